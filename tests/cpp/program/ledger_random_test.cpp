// Random operations on ledgers against plain vectors: contents, facts, digests, refusals and verification.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <type_traits>

#include "tests/cpp/program/naive_ledger.h"
#include "tests/support/test_seed.h"

namespace ninfer {
namespace {

using testing_support::naive_verification;
using testing_support::NaiveLedger;
using testing_support::TokenSource;

constexpr int kSteps = 20000;
constexpr std::size_t kMostLedgers = 24;
constexpr std::int64_t kMostTokens = 400;

class RandomLedgers {
   public:
    RandomLedgers() : engine_(testing_support::test_seed()), source_(engine_), verifier_(store_) {}

    void step() {
        using Operation = void (RandomLedgers::*)();
        static constexpr std::array<Operation, 8> kOperations = {
            &RandomLedgers::open, &RandomLedgers::fork,    &RandomLedgers::append, &RandomLedgers::append,
            &RandomLedgers::seal, &RandomLedgers::rewrite, &RandomLedgers::verify, &RandomLedgers::release};
        if (live_.empty()) return open();
        (this->*kOperations[static_cast<std::size_t>(below(std::ssize(kOperations)))])();
    }

    void check_contents() const {
        store_.check_invariants();
        ASSERT_EQ(store_.ledger_count(), std::ssize(live_));
        for (const auto& [id, naive] : live_) check_ledger(id, naive);
    }
    void release_all() {
        while (!live_.empty()) release();
        ASSERT_EQ(store_.run_count(), 0);
    }
    const std::map<std::string, int>& counts() const { return counts_; }

   private:
    struct Live {
        LedgerId id;
        NaiveLedger naive;
    };

    std::int64_t below(std::int64_t end) { return source_.below(end); }
    Live& any() { return live_[static_cast<std::size_t>(below(std::ssize(live_)))]; }

    void open() {
        if (live_.size() >= kMostLedgers) return release();
        NaiveLedger made;
        made.header = {below(4) == 0 ? "other" : "", below(8) == 0 ? "chat" : "", below(8) == 0 ? 1 : 0};
        made.room = below(kMostTokens);
        const LedgerId id = store_.open(made.header, made.room);
        live_.push_back({id, made});
        ++counts_["open"];
    }

    void fork() {
        if (live_.size() >= kMostLedgers) return release();
        Live& from = any();
        const std::int64_t length = from.naive.length();
        const std::int64_t frontier = below(3) == 0 ? length : below(length + 2);
        const std::int64_t room = frontier + below(4) * 50 - below(2);
        const auto made = checked("fork", [&] { return store_.fork(from.id, frontier, room); });
        if (frontier > length) return expect(made, {RefusalKind::kBeyondFrontier, frontier, length});
        if (room < frontier) return expect(made, {RefusalKind::kOverReservation, frontier, room});
        ASSERT_TRUE(made.has_value());
        NaiveLedger naive = from.naive.prefix(frontier);
        naive.room = room;
        live_.push_back({made.value(), naive});
    }

    void append() {
        Live& to = any();
        const std::int64_t length = to.naive.length();
        const std::int64_t count = below(5) == 0 ? below(150) : below(4);
        const bool text = below(2) == 0;
        const auto batch = source_.tokens(length, count, length == 0 ? nullptr : &to.naive.facts.back(), text);
        const auto origin = below(2) == 0 ? TokenOrigin::kPrompt : TokenOrigin::kOutput;
        const auto done = checked("append", [&] { return store_.append(to.id, {batch.ids, batch.spans, origin}); });
        if (length + count > to.naive.room)
            return expect(done, {RefusalKind::kOverReservation, length + count, to.naive.room});
        ASSERT_TRUE(done.has_value());
        to.naive.ids.insert(to.naive.ids.end(), batch.ids.begin(), batch.ids.end());
        to.naive.facts.insert(to.naive.facts.end(), batch.facts.begin(), batch.facts.end());
        to.naive.origins.insert(to.naive.origins.end(), batch.ids.size(), origin);
    }

    void seal() {
        Live& to = any();
        ASSERT_TRUE(checked("seal", [&] { return store_.seal(to.id); }).has_value());
        to.naive.room = to.naive.length();
    }

    void rewrite() {
        Live& to = any();
        const std::int64_t frontier = below(to.naive.length() + 2);
        const std::int64_t last = to.naive.rewrite_frontiers.empty() ? -1 : to.naive.rewrite_frontiers.back();
        const auto done = checked("rewrite", [&] { return store_.record_rewrite_frontier(to.id, frontier); });
        if (frontier > to.naive.length())
            return expect(done, {RefusalKind::kBeyondFrontier, frontier, to.naive.length()});
        if (frontier <= last) return expect(done, {RefusalKind::kBackwards, frontier, last});
        ASSERT_TRUE(done.has_value());
        to.naive.rewrite_frontiers.push_back(frontier);
    }

    void release() {
        const auto index = below(std::ssize(live_));
        const LedgerId id = live_[static_cast<std::size_t>(index)].id;
        ASSERT_TRUE(checked("release", [&] { return store_.release(id); }).has_value());
        live_.erase(live_.begin() + index);
        const Refusal stale{RefusalKind::kStaleHandle, id.generation(), id.generation() + std::int64_t{1}};
        expect(checked("stale", [&] { return store_.release(id); }), stale);
        expect(checked("stale", [&] { return store_.fork(id, 0, 0); }), stale);
        expect(checked("stale", [&] { return store_.append(id, {}); }), stale);
        expect(store_.length(id), stale);
        expect(store_.digest_at(id, 0), stale);
    }

    // A prompt that begins like a ledger, goes on by itself, and may differ in one place.
    NaiveLedger any_prompt() {
        const NaiveLedger& like = any().naive;
        NaiveLedger prompt = like.prefix(below(like.length() + 1));
        const auto more = source_.tokens(prompt.length(), below(20),
                                         prompt.facts.empty() ? nullptr : &prompt.facts.back(), below(2) == 0);
        prompt.ids.insert(prompt.ids.end(), more.ids.begin(), more.ids.end());
        prompt.facts.insert(prompt.facts.end(), more.facts.begin(), more.facts.end());
        if (below(10) == 0) prompt.header = any().naive.header;
        if (prompt.ids.empty() || below(2) == 0) return prompt;
        const auto at = static_cast<std::size_t>(below(prompt.length()));
        TokenFacts& facts = prompt.facts[at];
        switch (below(4)) {
            case 0:
                prompt.ids[at] += 1;
                break;
            case 1:
                facts.type += 1;
                break;
            case 2:
                facts.positions[static_cast<std::size_t>(below(kPositionAxes))] += 1;
                break;
            default:
                facts.media = facts.media ? std::optional<MediaPiece>{} : MediaPiece{};
        }
        return prompt;
    }

    void verify() {
        const NaiveLedger prompt = any_prompt();
        std::vector<LedgerCandidate> candidates;
        std::vector<const NaiveLedger*> naive;
        for (std::int64_t i = below(12); i >= 0; --i) {
            const Live& live = any();
            candidates.push_back({live.id, below(live.naive.length() + 1)});
            naive.push_back(&live.naive);
        }
        std::vector<Verification> answers(candidates.size());
        const auto spans = below(2) == 0 ? prompt.single_spans() : prompt.long_spans();
        ASSERT_TRUE(verifier_.verify({&prompt.header, prompt.ids, spans}, candidates, answers).has_value());
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const Verification expected = naive_verification(prompt, *naive[i], candidates[i].frontier);
            ASSERT_EQ(answers[i].matched, expected.matched);
            ASSERT_EQ(answers[i].difference, expected.difference);
            ASSERT_EQ(answers[i].exact, expected.exact);
            ++counts_["difference " + std::to_string(static_cast<int>(expected.difference))];
            ++counts_[expected.exact ? "hit" : "miss"];
        }
        candidates.back().frontier = naive.back()->length() + 1;
        expect(verifier_.verify({&prompt.header, prompt.ids, spans}, candidates, answers),
               {RefusalKind::kBeyondFrontier, naive.back()->length() + 1, naive.back()->length()});
    }

    // Counts the call, and holds a refusal to having changed nothing.
    template <typename Call>
    std::invoke_result_t<Call> checked(const std::string& name, Call&& call) {
        const std::uint64_t before = store_.fingerprint();
        auto result = call();
        if (!result.has_value()) {
            EXPECT_EQ(store_.fingerprint(), before) << name;
            ++counts_[name + " " + std::string(to_string(result.error().kind))];
        } else {
            ++counts_[name];
        }
        return result;
    }
    template <typename Value>
    void expect(const Result<Value, Refusal>& result, const Refusal& expected) {
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().message(), expected.message());
    }

    void check_ledger(LedgerId id, const NaiveLedger& naive) const {
        const std::int64_t length = naive.length();
        ASSERT_EQ(store_.length(id).value(), length);
        ASSERT_EQ(store_.room(id).value(), naive.room);
        ASSERT_EQ(*store_.header(id).value(), naive.header);
        std::vector<std::int32_t> ids(naive.ids.size());
        ASSERT_TRUE(store_.read(id, 0, ids).has_value());
        ASSERT_EQ(ids, naive.ids);
        std::vector<std::int32_t> viewed;
        for (auto piece = store_.view(id, 0).value(); !piece.empty();
             piece = store_.view(id, std::ssize(viewed)).value())
            viewed.insert(viewed.end(), piece.begin(), piece.end());
        ASSERT_EQ(viewed, naive.ids);
        for (std::int64_t i = 0; i < length; ++i)
            ASSERT_EQ(store_.facts(id, i).value(), naive.facts[static_cast<std::size_t>(i)]) << i;
        std::vector<Digest128> digests(naive.ids.size() + 1);
        const auto spans = naive.single_spans();
        all_prefix_digests({&naive.header, naive.ids, spans}, digests);
        for (std::int64_t i = 0; i <= length; ++i)
            ASSERT_EQ(store_.digest_at(id, i).value(), digests[static_cast<std::size_t>(i)]) << i;
        ASSERT_EQ(store_.count(id, TokenOrigin::kOutput, length / 3, length).value(),
                  std::count(naive.origins.begin() + length / 3, naive.origins.end(), TokenOrigin::kOutput));
        const auto rewrites = store_.rewrite_frontiers(id).value();
        ASSERT_TRUE(std::ranges::equal(rewrites, naive.rewrite_frontiers));
    }

    std::mt19937_64 engine_;
    TokenSource source_;
    LedgerStore store_;
    LedgerVerifier verifier_;
    std::vector<Live> live_;
    std::map<std::string, int> counts_;
};

TEST(LedgerRandomTest, TheStoreIsPlainVectors) {
    const testing_support::SeedTrace trace;
    RandomLedgers ledgers;
    for (int step = 0; step < kSteps; ++step) {
        ledgers.step();
        if (step % 50 == 0) ledgers.check_contents();
        if (testing::Test::HasFailure()) return;
    }
    ledgers.check_contents();
    ledgers.release_all();
    const std::array<std::string, 19> expected = {"open",
                                                  "fork",
                                                  "fork beyond_frontier",
                                                  "fork over_reservation",
                                                  "append",
                                                  "append over_reservation",
                                                  "seal",
                                                  "rewrite",
                                                  "rewrite beyond_frontier",
                                                  "rewrite backwards",
                                                  "release",
                                                  "stale stale_handle",
                                                  "hit",
                                                  "miss",
                                                  "difference 0",
                                                  "difference 4",
                                                  "difference 5",
                                                  "difference 6",
                                                  "difference 7"};
    for (const auto& name : expected) {
        const auto found = ledgers.counts().find(name);
        EXPECT_TRUE(found != ledgers.counts().end() && found->second >= 5) << name << " happened too rarely";
    }
}

}  // namespace
}  // namespace ninfer
