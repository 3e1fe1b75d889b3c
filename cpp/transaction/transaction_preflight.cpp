#include "cpp/transaction/transaction_preflight.h"

#include <optional>
#include <vector>

#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

// What the plan expects of one page or image that it names.
struct Place {
    bool on_device = false;
    bool on_host = false;
};

template <typename Store, typename Id>
std::optional<Refusal> check_places(const Store& store, std::span<const Id> ids, Place expected) {
    for (const Id id : ids) {
        const auto found = store.find(id);
        if (!found) return found.error();
        const auto& item = *found.value();
        if (item.on_device() != expected.on_device || item.on_host() != expected.on_host)
            return Refusal{RefusalKind::kStaleRevision, 1, 0};
    }
    return std::nullopt;
}

std::optional<Refusal> check_steps(const ResourceSteps& steps, const StateStores& stores) {
    const auto pages = [&](std::span<const PageId> ids, Place expected) {
        return check_places(*stores.kv, ids, expected);
    };
    if (const auto refusal = pages(steps.host_page_drops, {true, true})) return refusal;
    if (const auto refusal = pages(steps.device_page_drops, {true, true})) return refusal;
    if (const auto refusal = pages(steps.demoted_pages, {true, false})) return refusal;
    if (const auto refusal = pages(steps.restored_pages, {false, true})) return refusal;
    if (const auto refusal = pages(steps.late_host_drops, {false, true})) return refusal;
    if (stores.images == nullptr) return std::nullopt;
    const auto images = [&](std::span<const ImageId> ids, Place expected) {
        return check_places(*stores.images, ids, expected);
    };
    if (const auto refusal = images(steps.host_image_drops, {true, true})) return refusal;
    if (const auto refusal = images(steps.device_image_drops, {true, true})) return refusal;
    return images(steps.demoted_images, {true, false});
}

// Whether two projections lead to the same changes. What is used besides may differ: drained copies give something back.
bool lead_to_the_same(ResourceProjection left, const ResourceProjection& right) {
    for (std::size_t i = 1; i < left.used.size(); ++i)
        if (left.used[i] - left.used.front() != right.used[i] - right.used.front()) return false;
    left.used = right.used;
    left.peak = right.peak;
    left.residual = right.residual;
    left.pins = right.pins;
    return left == right;
}

// The holdings that a plan changes or starts from, as a target of their own: one that stays as it is wants of its runs and
// its image what a holding outside of the domain wants.
struct ChangedPart {
    std::vector<Holding> holdings;
    std::vector<HoldingOutcome> outcomes;
    ResourceNeed need;
};

bool stays_as_it_is(const HoldingOutcome& outcome, std::int64_t frontier) {
    return outcome.survives && !outcome.drops_host && outcome.image == ImageOutcome::kAsIs &&
           outcome.frontier == frontier && outcome.device_pages == pages_of(frontier);
}

Result<ChangedPart, Refusal> changed_part(const ResourcePlan& plan, const StateStores& stores) {
    ChangedPart part;
    part.need = plan.need();
    for (std::size_t i = 0; i < plan.holdings().size(); ++i) {
        const Holding& holding = plan.holdings()[i];
        if (const auto refusal = refusal_of(holding, stores)) return *refusal;
        const bool is_source = static_cast<std::int32_t>(i) == plan.need().source;
        if (!is_source && stays_as_it_is(plan.outcomes()[i], stores.kv->find(holding.kv).value()->frontier)) continue;
        if (is_source) part.need.source = static_cast<std::int32_t>(part.holdings.size());
        part.holdings.push_back(holding);
        part.outcomes.push_back(plan.outcomes()[i]);
    }
    return part;
}

}  // namespace

Result<ResourceProjection, Refusal> preflight(const ResourcePlan& plan, const StateStores& stores,
                                              std::uint64_t revision) {
    const auto planned = static_cast<std::int64_t>(plan.revision());
    const Refusal stale = {RefusalKind::kStaleRevision, planned, static_cast<std::int64_t>(revision)};
    if (plan.revision() != revision) return stale;
    const auto part = changed_part(plan, stores);
    if (!part) return part.error();
    TargetDomain domain(stores);
    if (const auto read = domain.read(part.value().holdings, revision); !read) return read.error();
    ResourceProjector projector(domain);
    const ResourceProjection projection = projector.project(part.value().outcomes, part.value().need);
    if (!lead_to_the_same(projection, plan.projection())) return stale;
    if (const auto refusal = refusal_of(projection, domain.capacity())) return *refusal;
    if (const auto refusal = check_steps(plan.steps(), stores)) return *refusal;
    return projection;
}

}  // namespace ninfer
