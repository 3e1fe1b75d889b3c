#pragma once

// What op tests share: the instruction sets this machine can run, an op context, seeded data, and guarded buffers that
// notice writes outside a view.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpp/base/cpu_features.h"
#include "cpp/ops/cpu/cpu_op_table.h"
#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {

inline std::vector<InstructionSet> supported_instruction_sets() {
    std::vector<InstructionSet> result;
    for (const auto isa : {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512})
        if (cpu_supports(isa)) result.push_back(isa);
    return result;
}

class OpEnvironment {
   public:
    // Without scratch, as for the ops whose contract says that they need none.
    explicit OpEnvironment(int threads = 1, std::size_t scratch_bytes = 0)
        : pool_(threads), scratch_(scratch_bytes), context_{pool_, scratch_} {}
    OpContext& context() { return context_; }

   private:
    ThreadPool pool_;
    ScratchArena scratch_;
    OpContext context_;
};

// A row-major matrix with a row stride larger than its columns; the gaps hold a canary.
class GuardedMatrix {
   public:
    GuardedMatrix(std::int64_t rows, std::int64_t columns, std::int64_t gap = 3)
        : rows_(rows),
          columns_(columns),
          stride_(columns + gap),
          data_(static_cast<std::size_t>(rows * stride_ + gap), kCanary) {}

    std::int64_t rows() const { return rows_; }
    std::int64_t columns() const { return columns_; }
    MatrixView view() { return {data_.data(), rows_, columns_, stride_}; }
    float& at(std::int64_t r, std::int64_t c) { return data_[static_cast<std::size_t>(r * stride_ + c)]; }
    float at(std::int64_t r, std::int64_t c) const { return data_[static_cast<std::size_t>(r * stride_ + c)]; }

    // These rows, in this order, with gaps of the same size.
    GuardedMatrix select(const std::vector<std::int64_t>& rows) const {
        GuardedMatrix result(static_cast<std::int64_t>(rows.size()), columns_, stride_ - columns_);
        for (std::size_t r = 0; r < rows.size(); ++r)
            std::memcpy(&result.at(static_cast<std::int64_t>(r), 0),
                        &data_[static_cast<std::size_t>(rows[r] * stride_)],
                        static_cast<std::size_t>(columns_) * sizeof(float));
        return result;
    }

    template <typename Generator>
    GuardedMatrix& fill(Generator&& next) {
        for (std::int64_t r = 0; r < rows_; ++r)
            for (std::int64_t c = 0; c < columns_; ++c) at(r, c) = static_cast<float>(next());
        return *this;
    }

    void expect_guards_intact() const {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(data_.size()); ++i)
            if (i % stride_ >= columns_ || i >= rows_ * stride_) {
                ASSERT_EQ(data_[static_cast<std::size_t>(i)], kCanary) << "written outside the view at " << i;
            }
    }
    bool same_row(std::int64_t row, const GuardedMatrix& other, std::int64_t other_row) const {
        return columns_ == other.columns_ &&
               std::memcmp(&data_[static_cast<std::size_t>(row * stride_)],
                           &other.data_[static_cast<std::size_t>(other_row * other.stride_)],
                           static_cast<std::size_t>(columns_) * sizeof(float)) == 0;
    }
    bool equal_bits(const GuardedMatrix& other) const {
        return data_.size() == other.data_.size() &&
               std::memcmp(data_.data(), other.data_.data(), data_.size() * sizeof(float)) == 0;
    }

   private:
    static constexpr float kCanary = -12345.5F;
    std::int64_t rows_;
    std::int64_t columns_;
    std::int64_t stride_;
    std::vector<float> data_;
};

class NormalSource {
   public:
    explicit NormalSource(std::uint64_t seed, double scale = 1.0) : engine_(seed), scale_(scale) {}
    double operator()() { return normal_(engine_) * scale_; }

   private:
    std::mt19937_64 engine_;
    std::normal_distribution<double> normal_;
    double scale_;
};

// Every op test instantiates this with the instruction sets of the machine.
class OpTest : public testing::TestWithParam<InstructionSet> {
   protected:
    const OpTable& ops() const { return cpu_op_table(GetParam()); }
    SeedTrace seed_trace_;
};

inline std::string instruction_set_name(const testing::TestParamInfo<InstructionSet>& info) {
    return std::string(to_string(info.param));
}

}  // namespace ninfer::testing_support

#define NINFER_INSTANTIATE_OP_TEST(suite)                                                                            \
    INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::ValuesIn(::ninfer::testing_support::supported_instruction_sets()), \
                             ::ninfer::testing_support::instruction_set_name)
