#include "tests/sim/model_transition.h"

#include <algorithm>

namespace ninfer::sim {
namespace {

int index_in(const ViewRecord& view, PageKey page) {
    const auto found = std::ranges::find(view.pages, page);
    return found == view.pages.end() ? -1 : static_cast<int>(found - view.pages.begin());
}

// Decides, page by page and image by image, what becomes of each.
class Decision {
   public:
    Decision(const ContextModel& model, ModelTransition& made)
        : model_(model), made_(made), need_(made.need), target_(made.target) {}

    void decide() {
        for (const auto& [key, owner] : model_.owners)
            for (const Key checkpoint : owner.checkpoints) decide_checkpoint(checkpoint);
        if (need_.source != 0) source_ = &model_.checkpoints.at(need_.source);
        moves_ = decide_move();
        made_.kv = need_.root ? KvActivation::kOpen : KvActivation::kNone;
        if (source_ != nullptr) made_.kv = moves_ ? KvActivation::kMove : KvActivation::kFork;
        for (const auto& [key, page] : model_.pages) decide_page(key, page);
        if (!model_.has_images()) return;
        made_.image = need_.root ? ImageActivation::kOpen : ImageActivation::kNone;
        for (const auto& [key, image] : model_.images)
            if (!image.active) decide_image(key, image);
    }

   private:
    struct Wants {
        bool kept = false;
        bool on_device = false;
        bool on_host = false;
        bool by_source = false;
        bool by_others = false;
        bool concerned = false;  // somebody that the target names sees it; else nothing is decided about it
    };

    const ModelWant* want_of(Key checkpoint) const {
        const auto found = target_.wants.find(checkpoint);
        return found == target_.wants.end() ? nullptr : &found->second;
    }
    bool goes(Key checkpoint) const {
        const ModelWant* want = want_of(checkpoint);
        return contains(need_.leaving, checkpoint) || (want != nullptr && !want->survives);
    }

    void decide_checkpoint(Key key) {
        const ModelWant* want = want_of(key);
        if (goes(key))
            made_.removed.push_back(key);
        else if (want != nullptr && want->frontier < model_.checkpoints.at(key).frontier())
            made_.shortened.emplace_back(key, want->frontier);
    }

    Wants wants_of(PageKey page) const {
        Wants wants;
        const auto want = [&](bool on_device, bool on_host) {
            wants.kept = wants.by_others = true;
            wants.on_device = wants.on_device || on_device;
            wants.on_host = wants.on_host || on_host;
        };
        for (const auto& [key, sequence] : model_.sequences) {
            if (index_in(sequence.view, page) >= 0) want(true, false);
            if (index_in(sequence.takeover.view, page) >= 0) want(true, true);
        }
        for (const CondemnedRecord& parts : model_.condemned)
            if (index_in(parts.view, page) >= 0) want(true, !parts.view.active);
        for (const auto& [key, checkpoint] : model_.checkpoints) {
            const int index = index_in(checkpoint.view, page);
            if (index >= 0 && (key == need_.source || goes(key) || want_of(key) != nullptr)) wants.concerned = true;
            if (index < 0 || key == need_.source || goes(key)) continue;
            const ModelWant* wanted = want_of(key);
            if (wanted == nullptr)
                want(true, true);
            else if (index < pages_for(wanted->frontier))
                want(index < wanted->device_pages, !wanted->drops_host);
        }
        if (source_ == nullptr || index_in(source_->view, page) < 0) return wants;
        wants.kept = wants.by_source = wants.on_device = true;
        wants.on_host = wants.on_host || !target_.drops_host_pages(need_.source);
        return wants;
    }

    // Whether the new sequence goes on in the source's own pages.
    bool decide_move() const {
        if (source_ == nullptr || !need_.consumes || need_.frontier < source_->frontier()) return false;
        return need_.frontier % 64 == 0 || !wants_of(source_->view.pages.back()).by_others;
    }

    void note_pins(PageKey page) { made_.pinned = made_.pinned || model_.pins(page) > 0; }
    void note_image_pins(ImageKey image) { made_.pinned = made_.pinned || model_.image_pins(image) > 0; }

    void decide_page(PageKey key, const PageRecord& page) {
        const Wants wants = wants_of(key);
        if (!wants.concerned) return;
        const int in_source = source_ == nullptr ? -1 : index_in(source_->view, key);
        const bool written = moves_ && need_.frontier % 64 != 0 && in_source == need_.frontier / 64;
        const bool leaves = need_.consumes && !moves_ && in_source >= need_.frontier / 64 && !wants.by_others;
        bool changes = !wants.kept || written || leaves;
        const auto change = [&](std::vector<PageKey>& list) {
            list.push_back(key);
            changes = true;
        };
        if (wants.kept && page.on_device && page.on_host) {
            if (!wants.on_device)
                change(made_.device_drops);
            else if (!wants.on_host && !written)
                change(made_.host_drops);
        } else if (wants.kept && page.on_device) {
            if (!wants.on_device) change(made_.demoted);
        } else if (wants.kept && in_source >= 0 && in_source < pages_for(need_.frontier)) {
            change(made_.restored);
            if (!wants.on_host && !written && !leaves) made_.late_host_drops.push_back(key);
        }
        if (changes) note_pins(key);
    }

    void decide_image(ImageKey key, const ImageRecord& image) {
        int others = 0;
        bool on_device = false;
        bool on_host = false;
        int held = 0;
        for (const auto& [name, checkpoint] : model_.checkpoints) {
            if (checkpoint.image != key) continue;
            ++held;
            if (name == need_.source || goes(name)) continue;
            ++others;
            const ModelWant* want = want_of(name);
            on_device = on_device || want == nullptr || want->image != ImageOutcome::kHostOnly;
            on_host = on_host || want == nullptr || want->image != ImageOutcome::kDeviceOnly;
        }
        const int outside = model_.references(key) - held;
        others += outside;
        const bool of_source = source_ != nullptr && source_->image == key;
        if (outside > 0 || of_source) on_device = true;
        on_host = on_host || outside > 0 || (of_source && !target_.drops_host_image(need_.source));
        bool changes = others == 0 && !of_source;
        const auto change = [&](std::vector<ImageKey>& list) {
            list.push_back(key);
            changes = true;
        };
        if (!changes && image.on_device && image.on_host) {
            if (!on_device) change(made_.image_device_drops);
            if (!on_host) change(made_.image_host_drops);
        } else if (!changes && image.on_device && !on_device) {
            change(made_.demoted_images);
        }
        if (of_source) changes = decide_activation(image, others) || changes;
        if (changes) note_image_pins(key);
    }

    // Whether the source's image itself changes.
    bool decide_activation(const ImageRecord& image, int others) {
        const bool last = need_.consumes && others == 0;
        made_.image = image.on_device ? ImageActivation::kFork : ImageActivation::kRestore;
        if (image.on_device && last) made_.image = ImageActivation::kMove;
        return last;
    }

    const ContextModel& model_;
    ModelTransition& made_;
    const ModelNeed& need_;
    const ModelTarget& target_;
    const CheckpointRecord* source_ = nullptr;
    bool moves_ = false;
};

// --- phases ---------------------------------------------------------------------------------------------------------

void release(ContextModel& model, ModelTransition& transition) {
    for (const Key key : transition.removed) {
        model.unlist(key);
        model.sweep();
        transition.now[key] = 0;
    }
    for (const auto& [key, frontier] : transition.shortened) {
        CheckpointRecord& record = model.checkpoints.at(key);
        record.tokens.resize(static_cast<std::size_t>(frontier));
        record.view.frontier = frontier;
        record.view.pages.resize(static_cast<std::size_t>(pages_for(frontier)));
        std::erase(model.owners.at(record.owner).checkpoints, key);
        model.list(key);
        model.sweep();
    }
    for (const PageKey page : transition.host_drops) model.pages.at(page).on_host = false;
    for (const PageKey page : transition.device_drops) model.pages.at(page).on_device = false;
    for (const ImageKey image : transition.image_host_drops) model.images.at(image).on_host = false;
    for (const ImageKey image : transition.image_device_drops) model.images.at(image).on_device = false;
    transition.changed = transition.releases();
}

void begin_copy(ContextModel& model, const CopyRecord& copy) { model.transition_copies.push_back(model.submit(copy)); }

void prepare_activation(ContextModel& model, const ModelTransition& transition) {
    const ModelNeed& need = transition.need;
    if (transition.kv == KvActivation::kOpen)
        model.transition_view = {.there = true, .active = true, .reserved = need.pages};
    if (transition.kv == KvActivation::kFork) {
        const ViewRecord source = model.checkpoints.at(need.source).view;
        model.transition_view = model.forked(source, need.frontier, need.pages - need.frontier / 64);
        const ViewRecord& view = model.transition_view;
        if (view.tail_source != 0)
            begin_copy(model, {.kind = CopyKind::kTail,
                               .page = view.tail_source,
                               .tail = view.pages[static_cast<std::size_t>(need.frontier / 64)]});
    }
    if (transition.image == ImageActivation::kOpen) model.transition_image = model.new_image({});
    const bool restores = transition.image == ImageActivation::kRestore;
    if (!restores && transition.image != ImageActivation::kFork) return;
    const ImageKey source = model.checkpoints.at(need.source).image;
    const std::uint64_t value = model.images.at(source).value;
    model.transition_image = model.new_image({.unsettled = restores, .source = source, .value = value});
    if (restores) begin_copy(model, {.kind = CopyKind::kRestore, .image = source, .restored = model.transition_image});
}

void prepare(ContextModel& model, const ModelTransition& transition) {
    if (transition.round == 2) return prepare_activation(model, transition);
    if (transition.round == 1) {
        for (const PageKey page : transition.restored)
            begin_copy(model, {.kind = CopyKind::kPageToDevice, .page = page});
        return;
    }
    for (const PageKey page : transition.demoted) begin_copy(model, {.kind = CopyKind::kPageToHost, .page = page});
    for (const ImageKey image : transition.demoted_images)
        begin_copy(model, {.kind = CopyKind::kImageToHost, .image = image});
}

void commit(ContextModel& model, ModelTransition& transition) {
    const ModelNeed& need = transition.need;
    for (const PageKey page : transition.late_host_drops) model.pages.at(page).on_host = false;
    if (need.source == 0) return;
    if (need.takes_owner) model.owners.at(model.checkpoints.at(need.source).owner).role = OwnerRole::kActive;
    if (!need.consumes) return;
    transition.changed = true;
    const CheckpointRecord source = model.unlist(need.source);
    transition.now[need.source] = 0;
    if (transition.kv == KvActivation::kMove)
        model.transition_view = model.consumed(source.view, need.pages - pages_for(need.frontier), true);
    if (transition.image == ImageActivation::kMove)
        model.transition_image = model.new_image({.value = model.images.at(source.image).value});
    model.sweep();
}

void publish(ContextModel& model, ModelTransition& transition) {
    const auto copies = std::exchange(model.transition_copies, {});
    for (const CopyRecord& copy : copies) {
        model.publish(copy);
        transition.changed = true;
    }
    if (transition.round == 0) {
        for (const PageKey page : transition.demoted) model.pages.at(page).on_device = false;
        for (const ImageKey image : transition.demoted_images) model.images.at(image).on_device = false;
    }
    if (transition.round == 2) {
        commit(model, transition);
        transition.phase = ModelPhase::kCommitted;
        return;
    }
    ++transition.round;
    transition.phase = ModelPhase::kPreparation;
}

CopyStatus status_of(const FaultyCopyEngine* engine, const CopyRecord& copy) {
    return engine == nullptr ? CopyStatus::kDone : engine->outcome(copy.ticket);
}

void drain(ContextModel& model, ModelTransition& transition, const FaultyCopyEngine* engine) {
    std::erase_if(model.transition_copies,
                  [&](const CopyRecord& copy) { return status_of(engine, copy) != CopyStatus::kPending; });
    if (!model.transition_copies.empty()) return;
    model.transition_view = {};
    model.transition_image = 0;
    model.sweep();
    transition.phase = ModelPhase::kAborted;
}

void look(ContextModel& model, ModelTransition& transition, const FaultyCopyEngine* engine) {
    bool pending = false;
    bool failed = false;
    for (const CopyRecord& copy : model.transition_copies) {
        pending = pending || status_of(engine, copy) == CopyStatus::kPending;
        failed = failed || status_of(engine, copy) == CopyStatus::kFailed;
    }
    if (failed) {
        transition.abort(TransactionEnd::kCopyFailed);
        drain(model, transition, engine);
    } else if (!pending) {
        transition.phase = ModelPhase::kPublication;
    }
}

}  // namespace

ModelTransition decide(const ContextModel& model, const ModelNeed& need, const ModelTarget& target) {
    ModelTransition made;
    made.need = need;
    made.target = target;
    made.peak = model.axes();
    Decision(model, made).decide();
    for (const auto& [key, want] : target.wants) made.now[key] = key;
    for (const Key key : need.leaving) made.now[key] = key;
    if (need.source == 0) return made;
    const CheckpointRecord& source = model.checkpoints.at(need.source);
    made.now[need.source] = need.source;
    made.source_tokens = source.tokens;
    made.source_owner = source.owner;
    made.source_kind = source.kind;
    return made;
}

void step_transition(ContextModel& model, const FaultyCopyEngine* engine) {
    ModelTransition& transition = *model.transition;
    if (transition.cancelled && transition.phase != ModelPhase::kDraining && !transition.ended())
        transition.abort(TransactionEnd::kCancelled);
    switch (transition.phase) {
        case ModelPhase::kReleases:
            release(model, transition);
            transition.phase = ModelPhase::kPreparation;
            break;
        case ModelPhase::kPreparation:
            prepare(model, transition);
            transition.phase = model.transition_copies.empty() ? ModelPhase::kPublication : ModelPhase::kInFlight;
            break;
        case ModelPhase::kInFlight:
            look(model, transition, engine);
            break;
        case ModelPhase::kPublication:
            publish(model, transition);
            break;
        case ModelPhase::kDraining:
            drain(model, transition, engine);
            break;
        case ModelPhase::kCommitted:
        case ModelPhase::kAborted:
            break;
    }
    transition.peak = larger_of(transition.peak, model.axes());
}

void advance_transition(ContextModel& model, const FaultyCopyEngine* engine) {
    ModelTransition& transition = *model.transition;
    while (!transition.ended()) {
        const ModelPhase before = transition.phase;
        const int round = transition.round;
        step_transition(model, engine);
        const bool waits = transition.phase == ModelPhase::kInFlight || transition.phase == ModelPhase::kDraining;
        if (waits && transition.phase == before && transition.round == round) return;
    }
}

ContextModel reached(const ContextModel& model, const ModelNeed& need, const ModelTarget& target) {
    ContextModel copy = model;
    copy.transition = decide(model, need, target);
    while (!copy.transition->ended()) step_transition(copy, nullptr);
    return copy;
}

ModelProjection project(const ContextModel& model, const ModelNeed& need, const ModelTarget& target) {
    ContextModel copy = model;
    copy.transition = decide(model, need, target);
    ModelTransition& transition = *copy.transition;
    ModelProjection projection;
    projection.pinned = transition.pinned;
    projection.kv = transition.kv;
    projection.image = transition.image;
    std::size_t stage = 0;
    projection.used[stage++] = copy.axes();
    step_transition(copy, nullptr);
    projection.used[stage++] = copy.axes();
    // Before and after each round's publication, where it is a stage.
    for (int round = 0; round < 3; ++round) {
        step_transition(copy, nullptr);
        for (const CopyRecord& open : copy.transition_copies) {
            if (open.kind == CopyKind::kPageToHost || open.kind == CopyKind::kImageToHost) ++projection.to_host;
            if (open.kind == CopyKind::kPageToDevice || open.kind == CopyKind::kRestore) ++projection.to_device;
            if (open.kind == CopyKind::kTail) ++projection.within_device;
        }
        projection.used[stage++] = copy.axes();
        while (transition.round == round && !transition.ended()) step_transition(copy, nullptr);
        if (round != 1) projection.used[stage++] = copy.axes();
    }
    projection.peak = projection.used.back() + need.room;
    for (const ResourceAxes& used : projection.used) projection.peak = larger_of(projection.peak, used);
    projection.residual = excess_over(projection.peak, model.capacity());
    return projection;
}

}  // namespace ninfer::sim
