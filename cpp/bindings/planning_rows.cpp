#include "cpp/bindings/planning_rows.h"

#include <memory>
#include <string_view>

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

// Names and values of one row, visited in one order: add(name, end of the name, value).
template <typename Add>
void add_axes(std::string_view name, const ResourceAxes& axes, Add&& add) {
    add(name, "_device_pages", axes.device_pages);
    add(name, "_image_slots_active", axes.image_slots_active);
    add(name, "_image_slots_checkpoint", axes.image_slots_checkpoint);
    add(name, "_host_blocks", axes.host_blocks);
}

template <typename Add>
void add_work(std::string_view name, const CopyWork& work, Add&& add) {
    add(name, "_operations", work.operations);
    add(name, "_bytes", work.bytes);
}

template <typename Add>
void visit(const TargetAssessment& assessed, Add&& add) {
    add("status", "", static_cast<std::int64_t>(assessed.status));
    add("reason", "", static_cast<std::int64_t>(assessed.reason));
    add("wanted", "", assessed.wanted);
    add("found", "", assessed.found);
    add("pins", "", assessed.pins);
    add_axes("used_now", assessed.used.front(), add);
    add_axes("used_after", assessed.used.back(), add);
    add_axes("peak", assessed.peak, add);
    add_axes("residual", assessed.residual, add);
    add_work("to_host", assessed.to_host, add);
    add_work("to_device", assessed.to_device, add);
    add_work("within_device", assessed.within_device, add);
    add_work("own_to_host", assessed.own_to_host, add);
    add_work("own_within_device", assessed.own_within_device, add);
    add("kv_activation", "", static_cast<std::int64_t>(assessed.kv));
    add("image_activation", "", static_cast<std::int64_t>(assessed.image));
    add("reused_tokens", "", assessed.reused_tokens);
    add("computed_tokens", "", assessed.computed_tokens);
    add("checkpoints_leaving", "", assessed.checkpoints_leaving);
    add("checkpoints_removed", "", assessed.checkpoints_removed);
    add("checkpoints_shortened", "", assessed.checkpoints_shortened);
    add("checkpoints_moved", "", assessed.checkpoints_moved);
    add("owners_evicted", "", assessed.owners_evicted);
}

template <typename Add>
void visit(const RecoveryRecipe& recipe, Add&& add) {
    add("target", "", recipe.target);
    add("checkpoint", "", static_cast<std::int64_t>(recipe.checkpoint.value));
    add("owner", "", static_cast<std::int64_t>(recipe.owner.value));
    add("base", "", static_cast<std::int64_t>(recipe.base.value));
    add("frontier", "", recipe.frontier);
    add("base_frontier", "", recipe.base_frontier);
    add_work("to_device", recipe.to_device, add);
    add_work("within_device", recipe.within_device, add);
}

template <typename Add>
void visit(const Degradation& step, Add&& add) {
    add("kind", "", static_cast<std::int64_t>(step.kind));
    add("owner", "", static_cast<std::int64_t>(step.owner.value));
    add("checkpoint", "", static_cast<std::int64_t>(step.checkpoint.value));
    add("device_pages", "", step.device_pages);
    add("frontier", "", step.frontier);
    add_axes("relief", step.relief, add);
    add("copied_bytes", "", step.copied_bytes);
}

template <typename Item>
std::vector<std::string> columns() {
    std::vector<std::string> names;
    visit(Item{}, [&](std::string_view name, std::string_view end, std::int64_t) {
        names.push_back(std::string(name) + std::string(end));
    });
    return names;
}

template <typename Item>
FactRows rows_of(std::span<const Item> items) {
    const std::size_t width = columns<Item>().size();
    auto values = std::make_unique<std::vector<std::int64_t>>();
    values->reserve(items.size() * width);
    for (const Item& item : items)
        visit(item, [&](std::string_view, std::string_view, std::int64_t value) { values->push_back(value); });
    std::int64_t* data = values->data();
    const nb::capsule owner(values.release(),
                            [](void* held) noexcept { delete static_cast<std::vector<std::int64_t>*>(held); });
    return FactRows(data, {items.size(), width}, owner);
}

}  // namespace

std::vector<std::string> assessment_columns() { return columns<TargetAssessment>(); }
std::vector<std::string> recovery_columns() { return columns<RecoveryRecipe>(); }
std::vector<std::string> degradation_columns() { return columns<Degradation>(); }

FactRows assessment_rows(std::span<const TargetAssessment> assessments) { return rows_of(assessments); }
FactRows recovery_rows(std::span<const RecoveryRecipe> recipes) { return rows_of(recipes); }
FactRows degradation_rows(std::span<const Degradation> steps) { return rows_of(steps); }

}  // namespace ninfer::bindings
