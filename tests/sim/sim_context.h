#pragma once

// One world of a simulation: the stores, the model, the random numbers, and what every operation needs: an argument drawn
// so that right, wrong and stale ones all occur, and one place where an answer of the stores is judged.

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "cpp/base/result.h"
#include "cpp/state/refusal.h"
#include "tests/sim/coverage_table.h"
#include "tests/sim/sim_failure.h"
#include "tests/sim/sim_random.h"
#include "tests/sim/situation.h"
#include "tests/sim/store_model.h"
#include "tests/sim/store_world.h"

namespace ninfer::sim {

using Expected = std::optional<Refusal>;  // empty: the operation is done

class SimContext {
   public:
    SimContext(std::uint64_t seed, bool faults, CoverageTable& coverage);

    SimRandom random;
    StoreWorld world;
    StoreModel model;

    // The operation that is tried now, and its arguments, for a failure.
    void begin(int operation) { operation_ = operation; }
    // The world is being emptied: what happens from now on is not counted.
    void stop_counting() { counting_ = false; }
    [[gnu::format(printf, 2, 3)]] void tell(const char* format, ...);
    const char* story() const { return story_; }

    // Handles: mostly one that is wanted, sometimes any, sometimes a stale or forged one.
    template <typename Wanted>
    SpaceId draw_space(Wanted&& wanted) {
        return {draw(model.spaces, model.space_handles, wanted)};
    }
    template <typename Wanted>
    ImageId draw_image(Wanted&& wanted) {
        return {draw(model.images, model.image_handles, wanted)};
    }
    template <typename Wanted>
    PageId draw_page(Wanted&& wanted) {
        const PageKey key = static_cast<PageKey>(draw(model.pages, HandleHistory{}, wanted));
        const auto found = model.pages.find(key);
        return {found == model.pages.end() ? forge(model.page_handles) : found->second.handle};
    }
    template <typename Wanted>
    CopyId draw_copy(Wanted&& wanted) {
        return {draw(model.copies, model.copy_handles, wanted)};
    }
    int draw_frontier(int limit);  // near the borders of pages, sometimes beyond the limit

    // Whether the operation, if it is done, changes anything in the stores.
    enum class Effect { kSome, kNone };

    // Calls the stores and compares with what the model expects. A refusal must have the values and change nothing; the
    // fingerprints that show it must themselves see every change.
    template <typename Call>
    auto attempt(const Expected& expected, Call&& call, Effect effect = Effect::kSome) {
        const bool looks = expected.has_value() || effect == Effect::kNone || random.percent(20);
        const std::uint64_t before = looks ? world.copies().fingerprint_of_all() : 0;
        auto answer = call();
        using Value = std::remove_cvref_t<decltype(answer.value())>;
        if (answer.has_value()) {
            if (expected) throw SimFailure("expected " + expected->message() + ", but it was done");
            if (looks && (world.copies().fingerprint_of_all() != before) != (effect == Effect::kSome))
                throw SimFailure("done, and the fingerprint is wrong about whether something changed");
            count_done();
            return std::optional<Value>(std::move(answer).value());
        }
        judge_refusal(expected, answer.error(), before);
        return std::optional<Value>();
    }
    void count_done() {
        if (counting_) coverage_.count_done(operation_);
    }
    void count(Situation situation) { count_situation(static_cast<int>(situation)); }
    void count(CopyKind kind, CopyEnding ending) { count_situation(situation_of(kind, ending)); }

   private:
    void count_situation(int situation) {
        if (counting_) coverage_.count_situation(situation);
    }
    void judge_refusal(const Expected& expected, const Refusal& found, std::uint64_t before);
    Key forge(const HandleHistory& handles);
    // Some can be judged alone, some only together with what else there is.
    template <typename Wanted, typename AnyKey, typename Item>
    static bool is_wanted(Wanted&& wanted, AnyKey key, const Item& item) {
        if constexpr (std::is_invocable_v<Wanted, const Item&>)
            return wanted(item);
        else
            return wanted(key, item);
    }
    template <typename Map, typename Wanted>
    Key draw(const Map& map, const HandleHistory& handles, Wanted&& wanted) {
        const int chance = random.below(100);
        if (chance < 2 || map.empty()) return forge(handles);
        Key chosen = 0;
        int count = 0;
        for (const auto& [key, item] : map)
            if ((chance < 8 || is_wanted(wanted, key, item)) && random.below(++count) == 0)
                chosen = static_cast<Key>(key);
        return count > 0 ? chosen : static_cast<Key>(map.begin()->first);
    }

    CoverageTable& coverage_;
    int operation_ = 0;
    bool counting_ = true;
    char story_[192] = "";
};

}  // namespace ninfer::sim
