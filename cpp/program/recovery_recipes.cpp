#include "cpp/program/recovery_recipes.h"

#include <algorithm>
#include <limits>

#include "cpp/state/page_count.h"

namespace ninfer {

void RecoveryRecipes::read(const PlanningDomain& domain) {
    nodes_.clear();
    nodes_of_run_.clear();
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
        nodes_of_run_[node.last.value].push_back(index);
    else
        runs.for_each_of(node.last, [&](RunId id, const auto&) { nodes_of_run_[id.value].push_back(index); });
    nodes_.push_back(node);
}

std::vector<std::int32_t>* RecoveryRecipes::nodes_of(RunId run) {
    const auto found = nodes_of_run_.find(run.value);
    return found == nodes_of_run_.end() ? nullptr : &found->second;
}

void RecoveryRecipes::append(const Question& question, std::vector<RecoveryRecipe>& recipes) {
    placed_.assign(nodes_.size(), {});
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
    placed = node.member == kOutside ? place_outside(node) : place_member(node, question);
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

RecoveryRecipes::Placed RecoveryRecipes::place_outside(const Node& node) const {
    const Checkpoint& checkpoint = *state_.owners.find(node.checkpoint).value();
    const SpaceFacts facts = state_.stores.kv().facts(checkpoint.kv).value();
    Placed placed;
    placed.survives = true;
    placed.frontier = checkpoint.frontier;
    placed.pages_missing = facts.pages - facts.pages_on_device;
    placed.image_missing =
        state_.stores.has_images() && !state_.stores.images().find(checkpoint.image).value()->on_device();
    return placed;
}

// From the deepest base to root: each that restores less than all before it.
void RecoveryRecipes::append_of(std::int32_t index, const Question& question, Recipes& recipes) {
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto offer = [&](RecoveryRecipe recipe) {
        if (recipe.to_device.bytes >= least) return;
        least = recipe.to_device.bytes;
        recipe.target = question.target;
        recipes.push_back(recipe);
    };
    const Placed& itself = placed(index, question);
    if (itself.survives && itself.frontier == node.frontier) offer(recipe(node, node, itself, node.frontier));
    const auto& runs = state_.stores.ledgers().runs();
    runs.for_each_of(node.last, [&](RunId id, const auto& run) {
        const std::vector<std::int32_t>* bases = nodes_of(id);
        if (bases == nullptr) return;
        for (const std::int32_t base : *bases) {
            const Placed& place = placed(base, question);
            const std::int64_t frontier = std::min(place.frontier, run.end());
            if (!place.survives || frontier <= run.begin || frontier > node.frontier) continue;
            if (base == index && frontier == node.frontier) continue;
            offer(recipe(node, nodes_[static_cast<std::size_t>(base)], place, frontier));
            // What is there of shared tokens lies in shared pages, wherever one looks.
            if (!state_.stores.has_images()) break;
        }
    });
    offer({.checkpoint = node.checkpoint, .owner = node.owner, .frontier = node.frontier});
}

RecoveryRecipe RecoveryRecipes::recipe(const Node& node, const Node& base, const Placed& placed,
                                       std::int64_t base_frontier) const {
    const auto page_bytes = static_cast<std::int64_t>(state_.stores.kv().device().page_bytes());
    const std::int64_t pages = std::min(placed.pages_missing, pages_of(base_frontier));
    RecoveryRecipe recipe{.checkpoint = node.checkpoint,
                          .owner = node.owner,
                          .base = base.checkpoint,
                          .frontier = node.frontier,
                          .base_frontier = base_frontier,
                          .to_device = {pages, pages * page_bytes}};
    if (placed.image_missing)
        recipe.to_device += {1, static_cast<std::int64_t>(state_.stores.images().size().image_bytes)};
    if (!is_aligned(base_frontier)) recipe.within_device = {1, page_bytes};
    return recipe;
}

}  // namespace ninfer
