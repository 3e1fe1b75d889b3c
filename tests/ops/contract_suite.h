#pragma once

// Rule X1 as one suite for every op whose rows do not depend on each other: a row has the same bits alone and in any
// chunk or order of a batch, for every thread count, and on every instruction set those of the scalar variant. Nothing
// outside the written views changes, and scratch of exactly the bytes that the contract states is enough.
//
// An op joins with a case type: the operands of one call, copyable.
//   static std::vector<Case> contract_cases()       the shapes that matter, at least one of several rows
//   std::string name() const                        what failures call it
//   std::int64_t rows() const
//   Case select(const std::vector<std::int64_t>&)   the same call with these rows, in this order
//   std::size_t scratch_bytes(int threads) const    as the contract states them
//   void run(const OpTable&, OpContext&)
//   std::vector<GuardedMatrix*> written()           one row per row of the call, what is updated in place included
// and NINFER_INSTANTIATE_CONTRACT_SUITE(Case) in its test file.

#include <algorithm>
#include <concepts>
#include <numeric>

#include "tests/ops/op_fixture.h"

namespace ninfer::testing_support {

using RowList = std::vector<std::int64_t>;

template <typename Case>
concept ContractCase = std::copyable<Case> && requires(Case& test, const Case& fixed, const RowList& rows,
                                                       const OpTable& ops, OpContext& context) {
    { Case::contract_cases() } -> std::same_as<std::vector<Case>>;
    { fixed.name() } -> std::same_as<std::string>;
    { fixed.rows() } -> std::same_as<std::int64_t>;
    { fixed.select(rows) } -> std::same_as<Case>;
    { fixed.scratch_bytes(1) } -> std::same_as<std::size_t>;
    { test.run(ops, context) } -> std::same_as<void>;
    { test.written() } -> std::same_as<std::vector<GuardedMatrix*>>;
};

inline RowList all_rows(std::int64_t count) {
    RowList rows(static_cast<std::size_t>(count));
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}

inline std::vector<RowList> chunks_of(std::int64_t count, std::int64_t chunk) {
    std::vector<RowList> result;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        auto& rows = result.emplace_back(all_rows(std::min(chunk, count - begin)));
        for (auto& row : rows) row += begin;
    }
    return result;
}

// Chunks around the row tiles of the kernels; backwards, shuffled and with a row twice.
inline std::vector<RowList> other_batches(std::int64_t count) {
    std::vector<RowList> result;
    for (const std::int64_t chunk : {2, 3, 4, 5, 6, 7, 8, 11, 17, 64})
        if (chunk < count)
            for (auto& rows : chunks_of(count, chunk)) result.push_back(std::move(rows));
    RowList rows = all_rows(count);
    std::reverse(rows.begin(), rows.end());
    result.push_back(rows);
    std::shuffle(rows.begin(), rows.end(), std::mt19937_64(test_seed()));
    result.push_back(rows);
    rows.insert(rows.begin(), rows.back());
    result.push_back(rows);
    return result;
}

template <ContractCase Case>
class OpContract : public testing::Test {
   protected:
    // The call with these rows, after it ran.
    static Case ran(const Case& test, const RowList& rows, InstructionSet isa, int threads) {
        Case selected = test.select(rows);
        OpEnvironment environment(threads, selected.scratch_bytes(threads));
        selected.run(cpu_op_table(isa), environment.context());
        EXPECT_EQ(environment.context().scratch.used_bytes(), 0U);
        for (auto* matrix : selected.written()) matrix->expect_guards_intact();
        return selected;
    }
    static Case ran(const Case& test, InstructionSet isa, int threads) {
        return ran(test, all_rows(test.rows()), isa, threads);
    }
    static void expect_same_row(Case& left, std::int64_t left_row, Case& right, std::int64_t right_row) {
        const auto left_written = left.written();
        const auto right_written = right.written();
        ASSERT_EQ(left_written.size(), right_written.size());
        for (std::size_t m = 0; m < left_written.size(); ++m)
            ASSERT_TRUE(left_written[m]->same_row(left_row, *right_written[m], right_row)) << "written matrix " << m;
    }
    static void expect_same(Case& left, Case& right) {
        for (std::int64_t row = 0; row < left.rows(); ++row) {
            SCOPED_TRACE(testing::Message() << "row " << row);
            expect_same_row(left, row, right, row);
        }
    }
    // Runs `check` for every case on every instruction set of this machine.
    template <typename Check>
    static void for_every_case(Check&& check) {
        for (const Case& test : Case::contract_cases())
            for (const auto isa : supported_instruction_sets()) {
                SCOPED_TRACE(testing::Message() << test.name() << ", " << to_string(isa));
                check(test, isa);
                if (testing::Test::HasFatalFailure()) return;
            }
    }
    SeedTrace seed_trace_;
};

TYPED_TEST_SUITE_P(OpContract);

TYPED_TEST_P(OpContract, RowsAloneEqualRowsInAnyBatch) {
    this->for_every_case([this](const TypeParam& test, InstructionSet isa) {
        if (test.rows() == 0) return;
        std::vector<TypeParam> alone;
        for (std::int64_t row = 0; row < test.rows(); ++row) alone.push_back(this->ran(test, RowList{row}, isa, 1));
        auto batches = other_batches(test.rows());
        batches.push_back(all_rows(test.rows()));
        for (const RowList& rows : batches) {
            TypeParam batch = this->ran(test, rows, isa, 2);
            for (std::size_t i = 0; i < rows.size(); ++i) {
                SCOPED_TRACE(testing::Message() << "row " << rows[i] << " as " << i << " of " << rows.size());
                this->expect_same_row(batch, static_cast<std::int64_t>(i), alone[static_cast<std::size_t>(rows[i])], 0);
            }
        }
    });
}

TYPED_TEST_P(OpContract, EveryThreadCountGivesTheSameBits) {
    this->for_every_case([this](const TypeParam& test, InstructionSet isa) {
        TypeParam one = this->ran(test, isa, 1);
        for (const int threads : {2, 3}) {
            TypeParam several = this->ran(test, isa, threads);
            SCOPED_TRACE(testing::Message() << threads << " threads");
            this->expect_same(several, one);
        }
    });
}

TYPED_TEST_P(OpContract, EveryInstructionSetGivesTheBitsOfScalar) {
    this->for_every_case([this](const TypeParam& test, InstructionSet isa) {
        TypeParam scalar = this->ran(test, InstructionSet::kScalar, 1);
        TypeParam here = this->ran(test, isa, 1);
        this->expect_same(here, scalar);
    });
}

TYPED_TEST_P(OpContract, NoRowsWriteNothing) {
    this->for_every_case([this](const TypeParam& test, InstructionSet isa) {
        for (const int threads : {1, 2}) this->ran(test, RowList{}, isa, threads);
    });
}

REGISTER_TYPED_TEST_SUITE_P(OpContract, RowsAloneEqualRowsInAnyBatch, EveryThreadCountGivesTheSameBits,
                            EveryInstructionSetGivesTheBitsOfScalar, NoRowsWriteNothing);

}  // namespace ninfer::testing_support

#define NINFER_INSTANTIATE_CONTRACT_SUITE(Case) \
    using namespace ::ninfer::testing_support;  \
    INSTANTIATE_TYPED_TEST_SUITE_P(Case, OpContract, Case)
