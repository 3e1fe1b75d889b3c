#pragma once

// One world of the simulation of a whole program's state: the state, the model, the random numbers, sealed plans that wait,
// and what every operation needs, as sim_context.h has it for the stores alone.

#include <deque>
#include <memory>
#include <set>

#include "cpp/program/context_state.h"
#include "cpp/program/planning_session.h"
#include "tests/sim/context_model.h"
#include "tests/sim/coverage_table.h"
#include "tests/sim/faulty_copy_engine.h"
#include "tests/sim/program_situation.h"
#include "tests/sim/sim_failure.h"
#include "tests/sim/sim_random.h"

namespace ninfer::sim {

using Expected = std::optional<Refusal>;  // empty: the operation is done

// Operations that come as parts of another one. In the table they stand before those that are drawn.
enum class PartOperation {
    kVerify,
    kOpen,
    kIdentity,
    kMaximal,
    kList,
    kDegrade,
    kAssess,
    kAssessMany,
    kBaseline,
    kSeal,
    kStart,
    kCount
};
std::vector<CoverageTable::OperationCase> part_operations();
// Those that are drawn, in the order of their list.
enum class DrawnOperation {
    kOpenRoot,
    kOpenFrom,
    kUnit,
    kCapture,
    kFinish,
    kClose,
    kStartCopy,
    kDrop,
    kDelete,
    kReleaseOwner,
    kCancelCopies,
    kPoll,
    kPlan,
    kOvertake,
    kExhaust,
    kAskOld,
    kStart,
    kAdvance,
    kStep,
    kCancel,
    kProve,
    kCount
};

// A sealed plan, and the problem that it answers.
struct WaitingPlan {
    ContextPlan plan;
    ModelNeed need;
    ModelTarget target;
    std::uint64_t revision = 0;
};

class ProgramSim {
   public:
    ProgramSim(std::uint64_t seed, bool faults, CoverageTable& coverage);

    SimRandom random;
    ContextSizes sizes;
    int fail_percent;          // of copies
    FaultyCopyEngine* engine;  // the state's
    std::unique_ptr<ContextState> state;
    ContextModel model;
    HandleHistory owner_handles, checkpoint_handles;
    LaneHistory lanes;
    std::deque<WaitingPlan> plans;
    PlanningSession session;
    TargetId last_target;
    std::uint64_t tokens_born = 0;
    std::map<PageKey, Key> page_names;  // handles of the stores, learned at the first look
    std::map<ImageKey, Key> image_names;

    bool has_images() const { return sizes.image_bytes > 0; }
    void begin(int operation) { operation_ = static_cast<int>(PartOperation::kCount) + operation; }
    void begin(DrawnOperation operation) { begin(static_cast<int>(operation)); }
    void begin(PartOperation part) { operation_ = static_cast<int>(part); }
    void stop_counting() { counting_ = false; }
    [[gnu::format(printf, 2, 3)]] void tell(const char* format, ...);
    const char* story() const { return story_; }

    // Mostly one that is wanted, sometimes any, sometimes a stale or forged one.
    template <typename Wanted>
    Key draw_sequence(Wanted&& wanted) {
        return draw(model.sequences, lanes.dead, wanted);
    }
    template <typename Wanted>
    Key draw_checkpoint(Wanted&& wanted) {
        return draw(model.checkpoints, checkpoint_handles.dead(), wanted);
    }
    template <typename Wanted>
    Key draw_owner(Wanted&& wanted) {
        return draw(model.owners, owner_handles.dead(), wanted);
    }
    const SequenceRecord* find_sequence(Key key) const { return find_in(model.sequences, key); }
    const CheckpointRecord* find_checkpoint(Key key) const { return find_in(model.checkpoints, key); }
    const OwnerRecord* find_owner(Key key) const { return find_in(model.owners, key); }
    Expected no_sequence(Key key) const;
    Expected no_checkpoint(Key key) const;
    Expected no_owner(Key key) const;
    Expected transaction_open() const;

    // Calls the state and compares with what the model expects. A refusal must have the values and change nothing.
    // How many runs a pin concerns is not the model's to know: kPinned may be tolerated.
    template <typename Call>
    auto attempt(const Expected& expected, Call&& call, bool may_be_pinned = false) {
        const std::uint64_t before = expected || may_be_pinned ? state->fingerprint() : 0;
        auto answer = call();
        using Value = std::remove_cvref_t<decltype(answer.value())>;
        if (answer.has_value()) {
            if (expected) throw SimFailure("expected " + expected->message() + ", but it was done");
            count_done();
            return std::optional<Value>(std::move(answer).value());
        }
        const bool tolerated = !expected && may_be_pinned && answer.error().kind == RefusalKind::kPinned;
        judge_refusal(tolerated ? answer.error() : expected, answer.error(), before);
        return std::optional<Value>();
    }
    void count_done() {
        if (counting_) coverage_.count_done(operation_);
    }
    void count(ProgramSituation situation) {
        if (counting_) coverage_.count_situation(static_cast<int>(situation));
    }
    // Takes the names of what was born and died since the last call into the histories.
    void note_handles();

   private:
    void judge_refusal(const Expected& expected, const Refusal& found, std::uint64_t before);
    template <typename Map>
    static const typename Map::mapped_type* find_in(const Map& map, Key key) {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : &found->second;
    }
    Key forge(const std::vector<Key>& dead);
    template <typename Map, typename Wanted>
    Key draw(const Map& map, const std::vector<Key>& dead, Wanted&& wanted) {
        const int chance = random.below(100);
        if (chance < 3 || map.empty()) return forge(dead);
        Key chosen = 0;
        int count = 0;
        for (const auto& [key, item] : map)
            if ((chance < 10 || wanted(key, item)) && random.below(++count) == 0) chosen = key;
        return count > 0 ? chosen : map.begin()->first;
    }

    CoverageTable& coverage_;
    int operation_ = 0;
    bool counting_ = true;
    std::set<Key> known_owners_, known_checkpoints_, known_sequences_;
    char story_[256] = "";
};

// Bytes: what a token's keys and values, and the state behind it, are, follows from all tokens up to it.
std::uint64_t value_behind(const TokenList& tokens, int frontier);

std::vector<std::uint64_t> values_of_tokens(const TokenList& tokens, int frontier);

IdentityHeader header_of(int salt);

}  // namespace ninfer::sim
