#include <algorithm>
#include <map>
#include <set>

#include "cpp/program/backfill_proof.h"
#include "tests/sim/planning_operations.h"
#include "tests/sim/planning_problem.h"

namespace ninfer::sim {

namespace {

using enum RefusalKind;

// What goes with the donors and the cache.
struct Leaving {
    std::int64_t pages = 0;
    std::int64_t lanes = 0;
};

template <typename Handle>
bool is_in(std::span<const Handle> handles, Key key) {
    return std::ranges::find(handles, Handle{key}) != handles.end();
}

Leaving what_leaves(const ContextModel& model, const BackfillQuestion& question) {
    Leaving leaving;
    std::vector<const ViewRecord*> views;
    std::set<Key> staying;  // owners
    for (const auto& [key, sequence] : model.sequences) {
        if (!is_in(question.donors, key)) {
            staying.insert(sequence.owner);
            continue;
        }
        leaving.lanes += model.has_images() && model.image_pins(sequence.image) > 0 ? 0 : 1;
        leaving.pages += sequence.view.reserved;
        views.push_back(&sequence.view);
        views.push_back(&sequence.takeover.view);
    }
    for (const auto& [key, checkpoint] : model.checkpoints)
        if (checkpoint.open_copies > 0) staying.insert(checkpoint.owner);
    for (const auto& [key, checkpoint] : model.checkpoints)
        if (!staying.contains(checkpoint.owner) && !is_in(question.protected_owners, checkpoint.owner))
            views.push_back(&checkpoint.view);
    std::map<PageKey, int> leavers;
    for (const ViewRecord* view : views)
        for (const PageKey page : view->pages) ++leavers[page];
    for (const auto& [page, count] : leavers)
        if (count == model.viewers(page) && model.pins(page) == 0 && model.pages.at(page).on_device) ++leaving.pages;
    return leaving;
}

std::int64_t pages_alone(const SequenceRequest& request) {
    return pages_for(static_cast<int>(request.tokens)) + request.captures;
}

}  // namespace

void ask_backfill(ProgramSim& sim) {
    const ContextModel& model = sim.model;
    BackfillQuestion question;
    const int most = static_cast<int>(sim.sizes.max_context);
    question.head.tokens = sim.random.between(1, sim.random.percent(90) ? most : most + 60);
    question.borrower.tokens = sim.random.between(1, most / 2);
    std::vector<SequenceHandle> donors;
    std::vector<OwnerHandle> owners;
    for (const auto& [key, sequence] : model.sequences)
        if (sim.random.percent(50)) donors.push_back(SequenceHandle{key});
    for (const auto& [key, owner] : model.owners)
        if (sim.random.percent(10)) owners.push_back(OwnerHandle{key});
    if (sim.random.percent(12))
        owners.push_back(OwnerHandle{sim.draw_owner([](Key, const OwnerRecord&) { return false; })});
    question.donors = donors;
    question.protected_owners = owners;
    sim.tell("backfill %d after %zu donors", static_cast<int>(question.head.tokens), donors.size());

    Expected expected = sim.transaction_open();
    for (const OwnerHandle owner : owners)
        if (!expected) expected = sim.no_owner(owner.value);
    if (!expected && question.head.tokens > most) expected = Refusal{kOverContext, question.head.tokens, most};
    const Leaving leaving = expected ? Leaving{} : what_leaves(model, question);
    const std::int64_t lanes = std::ssize(model.sequences) + model.lanes_ending() - leaving.lanes + 2;
    const std::int64_t needed =
        model.axes().device_pages - leaving.pages + pages_alone(question.head) + pages_alone(question.borrower);
    if (!expected && lanes > sim.sizes.lanes) expected = Refusal{kNoLane, lanes, sim.sizes.lanes};
    if (!expected && needed > sim.sizes.kv_pages) expected = Refusal{kNoPages, needed, sim.sizes.kv_pages};
    const auto proof = sim.attempt(expected, [&] { return prove_backfill(*sim.state, question); });
    if (!proof) return;
    expect_equal(needed, proof->pages_needed, "pages of a proof");
    expect_equal(true, proof->holds(*sim.state), "whether a proof holds");
}

}  // namespace ninfer::sim
