#pragma once

// Non-owning views of row-major f32 activations. A row is one token.

#include <cstdint>
#include <type_traits>

#include "cpp/base/assert.h"
#include "cpp/base/inline.h"

namespace ninfer {

template <typename T>
struct BasicMatrixView {
    T* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t row_stride = 0;  // in elements, >= columns

    NINFER_INLINE T* row(std::int64_t index) const { return data + index * row_stride; }

    // Columns [begin, begin + count) of every row.
    NINFER_INLINE BasicMatrixView column_slice(std::int64_t begin, std::int64_t count) const {
        NINFER_ASSERT_LE(begin + count, columns);
        return {data + begin, rows, count, row_stride};
    }
    NINFER_INLINE BasicMatrixView row_slice(std::int64_t begin, std::int64_t count) const {
        NINFER_ASSERT_LE(begin + count, rows);
        return {data + begin * row_stride, count, columns, row_stride};
    }

    NINFER_INLINE operator BasicMatrixView<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {data, rows, columns, row_stride};
    }
};

using MatrixView = BasicMatrixView<float>;
using ConstMatrixView = BasicMatrixView<const float>;

}  // namespace ninfer
