#include "cpp/program/recovery_recipes.h"

#include <algorithm>
#include <limits>

#include "cpp/state/page_count.h"

namespace ninfer {

void RecoveryRecipes::read(const PlanningDomain& domain) {
    nodes_.clear();
    bases_of_run_.clear();
    node_of_member_.assign(domain.members().size(), kOutside);
    state_.owners.for_each_checkpoint([&](CheckpointHandle handle, const Checkpoint& checkpoint) {
        if (checkpoint.awaits_image) return;
        add_node(handle, checkpoint);
        nodes_.back().member = domain.member_of(handle);
        if (nodes_.back().member != kOutside)
            node_of_member_[static_cast<std::size_t>(nodes_.back().member)] =
                static_cast<std::int32_t>(nodes_.size()) - 1;
    });
}

void RecoveryRecipes::add_node(CheckpointHandle handle, const Checkpoint& checkpoint) {
    const auto index = static_cast<std::int32_t>(nodes_.size());
    const auto& runs = state_.stores.ledgers().runs();
    Node node{handle, checkpoint.owner, state_.stores.ledgers().last_run(checkpoint.ledger), checkpoint.frontier};
    // A ledger without room may still end with an empty run of its own.
    while (!node.last.none() && runs.run(node.last).size() == 0) node.last = runs.run(node.last).parent;
    if (state_.stores.has_images())
        nodes_of(node.last).push_back(index);
    else
        runs.for_each_of(node.last, [&](RunId id, const auto&) { nodes_of(id).push_back(index); });
    nodes_.push_back(node);
}

void RecoveryRecipes::append(const Question& question, std::vector<RecoveryRecipe>& recipes) {
    placed_.assign(nodes_.size(), {});
    ++questions_;
    restored_counted_ = false;
    mark_changed(question);
    for (const std::int32_t node : node_of_member_)
        if (node != kOutside && is_asked(node, question)) append_of(node, question, recipes);
}

void RecoveryRecipes::mark_changed(const Question& question) {
    marked_runs_.clear();
    const auto& runs = state_.stores.ledgers().runs();
    for (std::size_t i = 0; i < node_of_member_.size(); ++i) {
        if (question.changed[i] == 0 || node_of_member_[i] == kOutside) continue;
        const RunId last = nodes_[static_cast<std::size_t>(node_of_member_[i])].last;
        if (state_.stores.has_images())
            marked_runs_.insert(last.value);
        else
            runs.for_each_of(last, [&](RunId id, const auto&) { marked_runs_.insert(id.value); });
    }
}

// One that is ready on Device itself needs nobody else: the copy of a tail costs less than any token.
bool RecoveryRecipes::is_asked(std::int32_t index, const Question& question) {
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    if (question.all || question.changed[static_cast<std::size_t>(node.member)] != 0) return true;
    if (placed(index, question).device_ready()) return false;
    bool marked = false;
    state_.stores.ledgers().runs().for_each_of(
        node.last, [&](RunId id, const auto&) { marked = marked || marked_runs_.contains(id.value); });
    return marked;
}

const RecoveryRecipes::Placed& RecoveryRecipes::placed(std::int32_t index, const Question& question) {
    Placed& placed = placed_[static_cast<std::size_t>(index)];
    if (placed.known) return placed;
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    placed = node.member == kOutside ? place_outside(node, question) : place_member(node, question);
    placed.known = true;
    return placed;
}

RecoveryRecipes::Placed RecoveryRecipes::place_member(const Node& node, const Question& question) const {
    const HoldingOutcome& outcome = question.outcomes[static_cast<std::size_t>(node.member)];
    Placed placed;
    placed.survives = outcome.survives && node.member != question.consumed;
    if (!placed.survives) return placed;
    const HoldingPlacement placement = question.projector->placement(node.member);
    placed.frontier = outcome.frontier;
    placed.pages_missing = placement.pages - placement.pages_on_device;
    placed.image_missing = state_.stores.has_images() && !placement.image_on_device;
    return placed;
}

void RecoveryRecipes::count_restored(const Question& question) {
    if (restored_counted_) return;
    restored_counted_ = true;
    restored_pages_.clear();
    question.projector->for_each_segment_change([&](const DomainRun& run, const SegmentChange& change) {
        if (change.restore.size() > 0) restored_pages_[run.id.value] += change.restore.size();
    });
}

// It keeps what it has, and pages that it shares with the source come back with that.
RecoveryRecipes::Placed RecoveryRecipes::place_outside(const Node& node, const Question& question) {
    const Checkpoint& checkpoint = *state_.owners.find(node.checkpoint).value();
    const SpaceFacts facts = state_.stores.kv().facts(checkpoint.kv).value();
    Placed placed;
    placed.survives = true;
    placed.frontier = checkpoint.frontier;
    placed.pages_missing = facts.pages - facts.pages_on_device;
    if (placed.pages_missing > 0) {
        count_restored(question);
        state_.stores.kv().for_each_run(checkpoint.kv, [&](const RunFacts& run) {
            const auto restored = restored_pages_.find(run.run.value);
            if (restored != restored_pages_.end()) placed.pages_missing -= restored->second;
        });
        NINFER_ASSERT_LE(0, placed.pages_missing);
    }
    placed.image_missing =
        state_.stores.has_images() && !state_.stores.images().find(checkpoint.image).value()->on_device();
    return placed;
}

// Whoever was cut within the run, or lies on Host, may hide nobody who has more of it, or costs less.
template <typename Run>
const std::vector<RecoveryRecipes::Base>& RecoveryRecipes::bases_of(RunId id, const Run& run,
                                                                    const Question& question) {
    static const std::vector<Base> kNone;
    const auto found = bases_of_run_.find(id.value);
    if (found == bases_of_run_.end()) return kNone;
    auto& [nodes, sifted, asked] = found->second;
    if (asked == questions_) return sifted;
    asked = questions_;
    sifted.clear();
    for (const std::int32_t node : nodes) {
        const Placed& place = placed(node, question);
        const std::int64_t frontier = std::min(place.frontier, run.end());
        if (!place.survives || frontier <= run.begin) continue;
        const Base base{node, frontier, restored(place, frontier).bytes};
        const auto covers = [](const Base& one, const Base& other) {
            return one.frontier >= other.frontier && one.bytes <= other.bytes;
        };
        if (std::any_of(sifted.begin(), sifted.end(), [&](const Base& one) { return covers(one, base); })) continue;
        std::erase_if(sifted, [&](const Base& one) { return covers(base, one); });
        sifted.push_back(base);
        if (frontier == run.end() && base.bytes == 0) break;  // nobody is better
    }
    std::sort(sifted.begin(), sifted.end(),
              [](const Base& one, const Base& other) { return one.frontier > other.frontier; });
    return sifted;
}

// From the deepest base to root: each that restores less than all before it.
void RecoveryRecipes::append_of(std::int32_t index, const Question& question, Recipes& recipes) {
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    const std::size_t first = recipes.size();
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto offer = [&](RecoveryRecipe recipe) {
        if (recipe.to_device.bytes >= least) return;
        least = recipe.to_device.bytes;
        recipe.target = question.target;
        if (recipes.size() > first && recipes.back().base_frontier == recipe.base_frontier) recipes.pop_back();
        recipes.push_back(recipe);
    };
    const Placed& itself = placed(index, question);
    if (itself.survives && itself.frontier == node.frontier) offer(recipe(node, node, itself, node.frontier));
    state_.stores.ledgers().runs().for_each_of(node.last, [&](RunId id, const auto& run) {
        for (const Base& base : bases_of(id, run, question))
            offer(
                recipe(node, nodes_[static_cast<std::size_t>(base.node)], placed(base.node, question), base.frontier));
    });
    offer({.checkpoint = node.checkpoint, .owner = node.owner, .frontier = node.frontier});
}

CopyWork RecoveryRecipes::restored(const Placed& placed, std::int64_t base_frontier) const {
    const auto page_bytes = static_cast<std::int64_t>(state_.stores.kv().device().page_bytes());
    const std::int64_t pages = std::min(placed.pages_missing, pages_of(base_frontier));
    CopyWork work{pages, pages * page_bytes};
    if (placed.image_missing) work += {1, static_cast<std::int64_t>(state_.stores.images().size().image_bytes)};
    return work;
}

RecoveryRecipe RecoveryRecipes::recipe(const Node& node, const Node& base, const Placed& placed,
                                       std::int64_t base_frontier) const {
    RecoveryRecipe recipe{.checkpoint = node.checkpoint,
                          .owner = node.owner,
                          .base = base.checkpoint,
                          .frontier = node.frontier,
                          .base_frontier = base_frontier,
                          .to_device = restored(placed, base_frontier)};
    if (!is_aligned(base_frontier))
        recipe.within_device = {1, static_cast<std::int64_t>(state_.stores.kv().device().page_bytes())};
    return recipe;
}

}  // namespace ninfer
