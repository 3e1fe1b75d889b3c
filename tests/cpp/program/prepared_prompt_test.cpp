#include "cpp/program/prepared_prompt.h"

#include <gtest/gtest.h>

#include <numeric>

#include "cpp/program/prefix_digest.h"

namespace ninfer {
namespace {

std::vector<std::int32_t> counting(std::int64_t count) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), 3);
    return tokens;
}

TEST(PreparedPromptTest, EveryFrontierHasTheDigestOfTheChain) {
    for (const std::int64_t size : {1, 63, 64, 65, 127, 128, 129, 200}) {
        const PreparedPrompt prompt({"salt", "mode", 2}, counting(size));
        std::vector<Digest128> expected(static_cast<std::size_t>(size) + 1);
        all_prefix_digests(prompt.view(), expected);
        for (std::int64_t frontier = 0; frontier <= size; ++frontier)
            EXPECT_EQ(prompt.digest_at(frontier), expected[static_cast<std::size_t>(frontier)]) << frontier;
    }
}

TEST(PreparedPromptTest, OnlyEqualIdentitiesAndBeginningsMatch) {
    const PreparedPrompt prompt({"salt", "", 0}, counting(130));
    const PreparedPrompt longer({"salt", "", 0}, counting(200));
    const PreparedPrompt salted({"other", "", 0}, counting(200));
    auto changed_tokens = counting(200);
    changed_tokens[64] = 1;
    const PreparedPrompt changed({"salt", "", 0}, changed_tokens);
    const std::vector<std::int64_t> frontiers = {0, 64, 64, 65, 65, 130, 130, 131, -1};
    const std::vector<Digest128> digests = {longer.digest_at(0),   longer.digest_at(64),  salted.digest_at(64),
                                            changed.digest_at(65), longer.digest_at(65),  longer.digest_at(130),
                                            longer.digest_at(131), longer.digest_at(131), longer.digest_at(0)};
    std::array<bool, 9> matches{};
    prompt.match(frontiers, digests, matches);
    EXPECT_EQ(matches, (std::array<bool, 9>{true, true, false, false, true, true, false, false, false}));
}

}  // namespace
}  // namespace ninfer
