#pragma once

// How a checkpoint could be had again when a target has been reached: what to restore, and what to compute from there.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cpp/program/planning_domain.h"
#include "cpp/transaction/resource_projection.h"

namespace ninfer {

// One way. Computing tokens [base_frontier, frontier) follows; none if the checkpoint itself is restored. Work is at
// most this: of a base that is used only up to base_frontier, pages beyond may be counted.
struct RecoveryRecipe {
    std::int64_t target = 0;  // index in the question
    CheckpointHandle checkpoint = {};
    OwnerHandle owner = {};
    CheckpointHandle base = {};  // what is restored; none: root
    std::int64_t frontier = 0;
    std::int64_t base_frontier = 0;
    CopyWork to_device = {};
    CopyWork within_device = {};  // of an unaligned tail

    bool operator==(const RecoveryRecipe&) const = default;
};

// The recipes of a domain's checkpoints: itself if it survives; every other survivor with the same beginning, found by
// shared runs of their ledgers; root. Without recurrent layers a base may also serve with the beginning that one of its runs
// ends. A recipe that restores no less and computes no less than another one is left out (copies within the device are not
// compared).
class RecoveryRecipes {
   public:
    explicit RecoveryRecipes(ContextState& state) : state_(state) {}

    // Reads who begins like whom. Domain and state must not change until the last question.
    void read(const PlanningDomain& domain);

    // Recipes of the members for which `asked` holds, after `projector` has projected these outcomes.
    struct Question {
        std::int64_t target = 0;
        const ResourceProjector* projector = nullptr;
        std::span<const HoldingOutcome> outcomes;
        std::int32_t consumed = -1;             // member that goes at the commit, or -1
        std::span<const std::uint8_t> changed;  // [member] asked about are these and all whose bases are among them
        bool all = false;                       // ask about all
    };
    void append(const Question& question, std::vector<RecoveryRecipe>& recipes);

   private:
    static constexpr std::int32_t kOutside = -1;
    // A checkpoint that may serve as a base.
    struct Node {
        CheckpointHandle checkpoint;
        OwnerHandle owner;
        RunId last;  // of its ledger
        std::int64_t frontier = 0;
        std::int32_t member = kOutside;
    };
    struct Placed {
        bool known = false;
        bool survives = false;
        bool image_missing = false;      // on Device
        std::int64_t pages_missing = 0;  // on Device
        std::int64_t frontier = 0;

        bool device_ready() const noexcept { return survives && pages_missing == 0 && !image_missing; }
    };
    // How much of a run somebody has in the end, and what it would restore for that.
    struct Base {
        std::int32_t node = 0;
        std::int64_t frontier = 0;
        std::int64_t bytes = 0;
    };
    struct RunBases {
        std::vector<std::int32_t> nodes;
        std::vector<Base> sifted;  // of the question: the deepest first, each cheaper than all before it
        std::int64_t question = 0;
    };
    using Recipes = std::vector<RecoveryRecipe>;

    void add_node(CheckpointHandle handle, const Checkpoint& checkpoint);
    std::vector<std::int32_t>& nodes_of(RunId run) { return bases_of_run_[run.value].nodes; }
    template <typename Run>
    const std::vector<Base>& bases_of(RunId id, const Run& run, const Question& question);
    void mark_changed(const Question& question);
    void count_restored(const Question& question);
    bool is_asked(std::int32_t node, const Question& question);
    const Placed& placed(std::int32_t node, const Question& question);
    Placed place_member(const Node& node, const Question& question) const;
    Placed place_outside(const Node& node, const Question& question);
    void append_of(std::int32_t node, const Question& question, Recipes& recipes);
    CopyWork restored(const Placed& placed, std::int64_t base_frontier) const;
    RecoveryRecipe recipe(const Node& node, const Node& base, const Placed& placed, std::int64_t base_frontier) const;

    ContextState& state_;
    std::vector<Node> nodes_;
    std::vector<std::int32_t> node_of_member_;
    // [ledger run] whose beginning it is: with recurrent layers the nodes that end with it, else all that have it.
    std::unordered_map<std::int32_t, RunBases> bases_of_run_;
    std::int64_t questions_ = 0;
    std::unordered_set<std::int32_t> marked_runs_;  // of the changed ones
    bool restored_counted_ = false;
    std::unordered_map<std::int32_t, std::int64_t> restored_pages_;  // [run of pages] that the new sequence needs
    std::vector<Placed> placed_;                                     // [node] of the present question
};

}  // namespace ninfer
