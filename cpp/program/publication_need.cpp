#include "cpp/program/publication_need.h"

#include "cpp/program/capture.h"
#include "cpp/program/sequence_opening.h"
#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

std::int64_t pages_for(const SequenceRequest& request) { return pages_of(request.tokens) + request.captures; }

Result<PublicationNeed, Refusal> need_of(const ContextState& state, const AdmissionPublication& admission) {
    const AdmissionCandidate& candidate = admission.candidate;
    PublicationNeed need;
    need.need.kind = candidate.is_root() ? ResourceNeed::Kind::kRoot : ResourceNeed::Kind::kSource;
    need.need.pages = pages_for(admission.request);
    if (candidate.is_root()) return need;
    const auto found = state.owners.find(candidate.source);
    if (!found) return found.error();
    const Checkpoint& source = *found.value();
    if (const auto refusal = check_source(state, source, candidate.frontier, admission.request)) return *refusal;
    need.source = candidate.source;
    need.need.frontier = candidate.frontier;
    need.need.consumes =
        candidate.takes_owner() && (candidate.use == SourceUse::kConsume || candidate.frontier < source.frontier);
    if (!candidate.takes_owner()) return need;
    if (const auto refusal = check_takeover(state, source.owner)) return *refusal;
    need.leaving = deeper_checkpoints(state, candidate.source, candidate.frontier);
    // One whose image is still to come holds nothing yet that a target could release.
    for (const CheckpointHandle handle : need.leaving)
        if (const Checkpoint& leaving = *state.owners.find(handle).value(); leaving.awaits_image)
            return Refusal{RefusalKind::kCopyInFlight, 0, leaving.open_copies};
    return need;
}

PublicationNeed room_need(const ContextState& state, SequenceHandle sequence, const ResourceAxes& room) {
    PublicationNeed need;
    need.need.room = room;
    need.computed = state.sequences.at(sequence).computed;
    if (room.host_blocks > 0)
        need.own_to_host = {1, static_cast<std::int64_t>(state.stores.images().size().image_bytes)};
    return need;
}

Result<PublicationNeed, Refusal> need_of(const ContextState& state, const CapturePublication& capture) {
    const auto room = capture_room(state, capture.sequence, capture.request);
    if (!room) return room.error();
    PublicationNeed need = room_need(state, capture.sequence, room.value());
    const std::int64_t tails = capture_shape(state, capture.sequence).value().copies;
    need.own_within_device = {tails, tails * static_cast<std::int64_t>(state.stores.kv().device().page_bytes())};
    return need;
}

Result<PublicationNeed, Refusal> need_of(const ContextState& state, const FinishPublication& finish) {
    const auto room = finish_room(state, finish.sequence, finish.request);
    if (!room) return room.error();
    return room_need(state, finish.sequence, room.value());
}

Result<PublicationNeed, Refusal> need_of(const ContextState&, const NoPublication&) { return PublicationNeed{}; }

}  // namespace

Result<PublicationNeed, Refusal> need_of(const ContextState& state, const Publication& publication) {
    return std::visit([&](const auto& one) { return need_of(state, one); }, publication);
}

std::optional<Refusal> check_alone(const ContextState& state, const Publication& publication) {
    const auto* admission = std::get_if<AdmissionPublication>(&publication);
    if (admission == nullptr) return std::nullopt;
    if (admission->request.tokens > state.max_context)
        return Refusal{RefusalKind::kOverContext, admission->request.tokens, state.max_context};
    const std::int64_t pages = pages_for(admission->request);
    const std::int64_t total = state.stores.kv().device().pages_total();
    if (pages > total) return Refusal{RefusalKind::kNoPages, pages, total};
    if (state.stores.has_images() && state.stores.images().size().active_slots < 1)
        return Refusal{RefusalKind::kNoImageSlots, 1, 0};
    return std::nullopt;
}

std::optional<Refusal> check_place(const ContextState& state, const Publication& publication) {
    if (!std::holds_alternative<AdmissionPublication>(publication)) return std::nullopt;
    return state.check_lane();
}

}  // namespace ninfer
