#include "tests/sim/planning_problem.h"

#include <algorithm>
#include <array>

#include "cpp/program/candidate_verification.h"
#include "tests/sim/placement_operations.h"
#include "tests/sim/sequence_operations.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

constexpr Refusal kNotThere{kStaleHandle, 1, 0};

int pages_for_request(const SequenceRequest& request) {
    return pages_for(static_cast<int>(request.tokens)) + static_cast<int>(request.captures);
}

Expected find_admission(const ProgramSim& sim, const AdmissionPublication& admission, ModelNeed& need) {
    const AdmissionCandidate& candidate = admission.candidate;
    need.root = candidate.is_root();
    need.pages = pages_for_request(admission.request);
    if (need.root) return {};
    const Key source = candidate.source.value;
    const int frontier = static_cast<int>(candidate.frontier);
    if (const Expected no = sim.no_checkpoint(source)) return no;
    if (const Expected no = not_a_source(sim, source, frontier, admission.request)) return no;
    const CheckpointRecord& from = sim.model.checkpoints.at(source);
    need.source = source;
    need.frontier = frontier;
    need.takes_owner = candidate.use != SourceUse::kRetain;
    need.consumes = need.takes_owner && (candidate.use == SourceUse::kConsume || frontier < from.frontier());
    if (!need.takes_owner) return {};
    if (const Expected no = no_takeover(sim, from.owner)) return no;
    need.leaving = sim.model.deeper(source, frontier);
    for (const Key key : need.leaving)
        if (const CheckpointRecord& leaving = sim.model.checkpoints.at(key); leaving.awaits_image)
            return Refusal{kCopyInFlight, 0, leaving.open_copies};
    return {};
}

Expected find_room(const ProgramSim& sim, Key sequence, Tier tier, bool finishes, ModelNeed& need) {
    if (const Expected no = not_ready_to_capture(sim, sequence, finishes)) return no;
    need.room = room_for_image(sim, sim.model.sequences.at(sequence), tier);
    need.computed = sim.model.sequences.at(sequence).computed;
    return {};
}

// --- candidates -----------------------------------------------------------------------------------------------------

int common_prefix(const TokenList& left, const TokenList& right) {
    const auto most = std::min(left.size(), right.size());
    std::size_t same = 0;
    while (same < most && left[same].id == right[same].id) ++same;
    return static_cast<int>(same);
}

// What the checkpoint saves of the prompt; 0: nothing.
int saved_tokens(const ProgramSim& sim, const CheckpointRecord& from, const TokenList& prompt, int salt) {
    if (from.awaits_image || from.salt != salt) return 0;
    const int same = common_prefix(from.tokens, prompt);
    const int most = std::min(from.frontier(), static_cast<int>(prompt.size()) - 1);
    if (!sim.has_images()) return std::min(most, same);
    return same == from.frontier() && most == from.frontier() ? most : 0;
}

std::vector<AdmissionCandidate> expected_candidates(const ProgramSim& sim, const TokenList& prompt, int salt,
                                                    const std::vector<CandidateSource>& sources) {
    std::vector<AdmissionCandidate> found(1);
    found.front().prompt_tokens = std::ssize(prompt);
    for (const CandidateSource& source : sources) {
        const CheckpointRecord& from = sim.model.checkpoints.at(source.checkpoint.value);
        const int saved = saved_tokens(sim, from, prompt, salt);
        if (saved < 1 || (source.use != SourceUse::kRetain && no_takeover(sim, from.owner))) continue;
        const bool truncated = saved < from.frontier();
        const SourceUse use = truncated && source.use == SourceUse::kContinue ? SourceUse::kConsume : source.use;
        found.push_back({.source = source.checkpoint,
                         .use = use,
                         .frontier = saved,
                         .prompt_tokens = std::ssize(prompt),
                         .truncated = truncated});
    }
    return found;
}

bool same(const AdmissionCandidate& left, const AdmissionCandidate& right) {
    return left.source == right.source && left.use == right.use && left.frontier == right.frontier &&
           left.prompt_tokens == right.prompt_tokens && left.truncated == right.truncated;
}

TokenList draw_prompt(ProgramSim& sim, Key from) {
    TokenList prompt;
    if (const CheckpointRecord* checkpoint = sim.find_checkpoint(from)) prompt = checkpoint->tokens;
    if (!prompt.empty() && sim.random.percent(sim.has_images() ? 8 : 45))
        prompt.resize(static_cast<std::size_t>(sim.random.between(1, static_cast<int>(prompt.size()))));
    const auto more = draw_tokens(sim, sim.random.percent(15) ? sim.random.below(3) : sim.random.between(1, 50));
    prompt.insert(prompt.end(), more.begin(), more.end());
    if (prompt.empty()) prompt = draw_tokens(sim, 1);
    return prompt;
}

std::vector<AdmissionCandidate> draw_candidates(ProgramSim& sim, const TokenList& prompt, int salt, Key from) {
    std::vector<CandidateSource> sources;
    const int count = sim.random.percent(8) ? 0 : sim.random.between(1, 3);
    for (int i = 0; i < count; ++i) {
        const Key key = i == count - 1 ? from : sim.draw_checkpoint([&](Key, const CheckpointRecord& it) {
            return saved_tokens(sim, it, prompt, salt) > 0;
        });
        const bool consumes = sim.random.percent(30);
        const auto use = consumes ? SourceUse::kConsume : static_cast<SourceUse>(sim.random.below(3));
        sources.push_back({CheckpointHandle{key}, use});
    }
    Expected expected;
    for (const CandidateSource& source : sources)
        if (!expected) expected = sim.no_checkpoint(source.checkpoint.value);
    const IdentityHeader header = header_of(salt);
    const auto ids = ids_of(prompt);
    sim.begin(PartOperation::kVerify);
    const auto found =
        sim.attempt(expected, [&] { return verify_candidates(*sim.state, {&header, ids, {}}, sources); });
    if (!found) return std::vector<AdmissionCandidate>(1, AdmissionCandidate{.prompt_tokens = std::ssize(prompt)});
    if (!std::ranges::equal(expected_candidates(sim, prompt, salt, sources), *found, same))
        throw SimFailure("other candidates than expected");
    return *found;
}

// What no caller should ask for.
void spoil(ProgramSim& sim, PlanningProblem& problem) {
    auto& admission = std::get<AdmissionPublication>(problem.options.back());
    switch (sim.random.below(5)) {
        case 0:
            admission.request.header = header_of(admission.request.header.salt.empty() ? 1 : 0);
            break;
        case 1:
            if (admission.candidate.is_root()) break;
            admission.candidate.frontier += sim.random.between(-5, 5);
            admission.candidate.frontier = std::max<std::int64_t>(admission.candidate.frontier, 0);
            break;
        case 2:
            while (std::ssize(problem.options) <= PlanningSession::kMaxOptions)
                problem.options.push_back(problem.options.front());
            break;
        case 3:
            if (!admission.candidate.is_root()) admission.candidate.use = static_cast<SourceUse>(sim.random.below(3));
            break;
        default:
            admission.request.tokens = sim.sizes.max_context + 1;
    }
}

void draw_admission(ProgramSim& sim, PlanningProblem& problem) {
    const bool from_host = sim.random.percent(66);
    const Key from = sim.draw_checkpoint([&](Key, const CheckpointRecord& it) {
        const int pages = static_cast<int>(it.view.pages.size());
        return !it.awaits_image && (!from_host || sim.model.on_device(it.view, pages) < pages);
    });
    const CheckpointRecord* checkpoint = sim.find_checkpoint(from);
    int salt = checkpoint == nullptr ? 0 : checkpoint->salt;
    if (sim.random.percent(3)) salt = 1 - salt;
    const TokenList prompt = draw_prompt(sim, from);
    SequenceRequest request{.tokens = std::ssize(prompt) + sim.random.below(90), .header = header_of(salt)};
    request.captures = sim.random.percent(25) ? 0 : sim.random.between(0, 2);
    if (sim.random.percent(94)) request.tokens = std::min(request.tokens, sim.sizes.max_context);
    for (const AdmissionCandidate& candidate : draw_candidates(sim, prompt, salt, from))
        if (candidate.frontier <= request.tokens) problem.options.push_back(AdmissionPublication{candidate, request});
    if (sim.random.percent(10)) spoil(sim, problem);
}

}  // namespace

bool PlanningProblem::is_protected(Key owner) const { return contains(protected_owners, owner); }

namespace {

enum class OfSequence { kCapture, kFinish };

// On one tier or the other, whichever comes first.
template <typename Wanted>
void draw_of_sequence(ProgramSim& sim, PlanningProblem& problem, OfSequence what, Wanted&& wanted) {
    std::array tiers{Tier::kDevice, Tier::kHost};
    if (sim.random.percent(50)) std::swap(tiers[0], tiers[1]);
    const SequenceHandle sequence{sim.draw_sequence(wanted)};
    for (const Tier tier : tiers) {
        if (what == OfSequence::kCapture)
            problem.options.push_back(
                CapturePublication{sequence, {.image_tier = tier, .own = sim.random.percent(50)}});
        else
            problem.options.push_back(FinishPublication{sequence, {.image_tier = tier}});
    }
}

}  // namespace

PlanningProblem draw_publication(ProgramSim& sim) {
    constexpr int kCapturePercent = 55;
    PlanningProblem problem;
    const auto what = sim.random.percent(kCapturePercent) ? OfSequence::kCapture : OfSequence::kFinish;
    draw_of_sequence(sim, problem, what, [&](Key key, const SequenceRecord& it) {
        return can_compute(sim, it) && !not_ready_to_capture(sim, key, what == OfSequence::kFinish);
    });
    return problem;
}

PlanningProblem draw_problem(ProgramSim& sim) {
    PlanningProblem problem;
    for (const auto& [key, owner] : sim.model.owners)
        if (sim.random.percent(6)) problem.protected_owners.push_back(key);
    const bool is_full = std::ssize(sim.model.sequences) >= sim.sizes.lanes;
    const int kind = is_full && sim.random.percent(85) ? sim.random.between(68, 99) : sim.random.below(100);
    const auto any = [](Key, const SequenceRecord& it) { return it.computed > 0 && it.computed < it.reserved; };
    if (kind < 68 || (kind < 94 && sim.model.sequences.empty())) {
        draw_admission(sim, problem);
    } else if (kind < 81) {
        draw_of_sequence(sim, problem, OfSequence::kCapture, any);
    } else if (kind < 94) {
        draw_of_sequence(sim, problem, OfSequence::kFinish, any);
    } else {
        problem.options.push_back(NoPublication{});
    }
    return problem;
}

Expected find_need(const ProgramSim& sim, const Publication& publication, ModelNeed& need) {
    if (const auto* admission = std::get_if<AdmissionPublication>(&publication))
        return find_admission(sim, *admission, need);
    if (const auto* capture = std::get_if<CapturePublication>(&publication))
        return find_room(sim, capture->sequence.value, capture->request.image_tier, false, need);
    if (const auto* finish = std::get_if<FinishPublication>(&publication))
        return find_room(sim, finish->sequence.value, finish->request.image_tier, true, need);
    return {};
}

Expected no_opening(const ProgramSim& sim, PlanningProblem& problem) {
    if (const Expected no = sim.transaction_open()) return no;
    if (std::ssize(problem.options) > PlanningSession::kMaxOptions)
        return Refusal{kBatchSize, std::ssize(problem.options), PlanningSession::kMaxOptions};
    for (const Key owner : problem.protected_owners)
        if (const Expected no = sim.no_owner(owner)) return no;
    bool any = false;
    for (const Publication& publication : problem.options) {
        ModelNeed need;
        Expected no = find_need(sim, publication, need);
        if (!no && need.takes_owner && problem.is_protected(sim.model.checkpoints.at(need.source).owner))
            no = Refusal{kProtected, static_cast<std::int64_t>(sim.model.checkpoints.at(need.source).owner),
                         static_cast<std::int64_t>(need.source)};
        any = any || !no;
        problem.needs.push_back(need);
        problem.left_out.push_back(no);
    }
    return any ? Expected{} : problem.left_out.front();
}

Expected not_serial(const ProgramSim& sim) {
    if (const Expected no = sim.transaction_open()) return no;
    const ContextModel& model = sim.model;
    if (!model.jobs.empty()) return Refusal{kCopyInFlight, 0, std::ssize(model.jobs)};
    const auto unsettled = std::ranges::count_if(model.sequences, [&](const auto& item) {
        const SequenceRecord& sequence = item.second;
        return sequence.view.tail_source != 0 || (sequence.image != 0 && model.images.at(sequence.image).source != 0);
    });
    if (unsettled > 0) return Refusal{kUnsettled, 0, unsettled};
    return {};
}

Expected not_startable(const ProgramSim& sim, const ModelNeed& need, const ModelTarget& target) {
    const bool has_stages = need.root || need.source != 0 || !target.wants.empty();
    return has_stages ? not_serial(sim) : sim.transaction_open();
}

Expected not_alone(const ProgramSim& sim, const Publication& publication) {
    const auto* admission = std::get_if<AdmissionPublication>(&publication);
    if (admission == nullptr) return {};
    const SequenceRequest& request = admission->request;
    if (request.tokens > sim.sizes.max_context) return Refusal{kOverContext, request.tokens, sim.sizes.max_context};
    const int pages = pages_for_request(request);
    if (pages > sim.sizes.kv_pages) return Refusal{kNoPages, pages, sim.sizes.kv_pages};
    return {};
}

Expected not_placed(const ProgramSim& sim, const Publication& publication) {
    if (!std::holds_alternative<AdmissionPublication>(publication)) return {};
    if (sim.model.has_lane()) return {};
    return Refusal{kNoLane, sim.sizes.lanes + 1, sim.sizes.lanes};
}

Expected does_not_fit(const ProgramSim& sim, const ModelProjection& projection) {
    const ResourceAxes& peak = projection.peak;
    const ResourceAxes& excess = projection.residual;
    const ResourceAxes has = sim.model.capacity();
    if (excess.device_pages > 0) return Refusal{kNoPages, peak.device_pages, has.device_pages};
    if (excess.image_slots_active > 0) return Refusal{kNoImageSlots, peak.image_slots_active, has.image_slots_active};
    if (excess.image_slots_checkpoint > 0)
        return Refusal{kNoImageSlots, peak.image_slots_checkpoint, has.image_slots_checkpoint};
    if (excess.host_blocks > 0) return Refusal{kNoHostBlocks, peak.host_blocks, has.host_blocks};
    return {};
}

// --- steps ----------------------------------------------------------------------------------------------------------

bool is_eligible(const ProgramSim& sim, const PlanningProblem& problem, Key owner) {
    const OwnerRecord* record = sim.find_owner(owner);
    if (record == nullptr || record->role == OwnerRole::kActive || problem.is_protected(owner)) return false;
    return std::ranges::none_of(record->checkpoints,
                                [&](Key key) { return sim.model.checkpoints.at(key).open_copies > 0; });
}

namespace {

bool is_fixed(const ModelNeed& need, Key checkpoint) {
    return checkpoint == need.source || contains(need.leaving, checkpoint);
}

bool has_both(const ProgramSim& sim, const CheckpointRecord& checkpoint) {
    return std::ranges::any_of(checkpoint.view.pages, [&](PageKey page) {
        const PageRecord& record = sim.model.pages.at(page);
        return record.on_device && record.on_host;
    });
}

Expected lower(const ProgramSim& sim, Key key, ModelWant& want, const Degradation& step) {
    const CheckpointRecord& checkpoint = sim.model.checkpoints.at(key);
    const ImageRecord none{.on_device = false};
    const ImageRecord& image = checkpoint.image == 0 ? none : sim.model.images.at(checkpoint.image);
    const Refusal no{kBackwards, 0, 0};
    if (!want.survives) return no;
    switch (step.kind) {
        case DegradationKind::kDropHostPages:
            if (want.drops_host || !has_both(sim, checkpoint)) return no;
            want.drops_host = true;
            return {};
        case DegradationKind::kDropHostImage:
            if (want.image != ImageOutcome::kAsIs || !image.on_device || !image.on_host) return no;
            want.image = ImageOutcome::kDeviceOnly;
            return {};
        case DegradationKind::kPagesToHost:
            if (step.device_pages < 0 || step.device_pages >= want.device_pages)
                return Refusal{kBackwards, step.device_pages, want.device_pages};
            want.device_pages = static_cast<int>(step.device_pages);
            return {};
        case DegradationKind::kImageToHost:
            if (want.image != ImageOutcome::kAsIs || !image.on_device) return no;
            want.image = ImageOutcome::kHostOnly;
            return {};
        case DegradationKind::kShorten:
            if (checkpoint.image != 0 || step.frontier < 1 || step.frontier >= want.frontier)
                return Refusal{kBackwards, step.frontier, want.frontier};
            want.frontier = static_cast<int>(step.frontier);
            return {};
        case DegradationKind::kDelete:
        case DegradationKind::kEvict:
            want = {.survives = false};
            return {};
    }
    return no;
}

}  // namespace

Expected step_down(const ProgramSim& sim, const PlanningProblem& problem, ModelTarget& target,
                   const Degradation& step) {
    const bool evicts = step.kind == DegradationKind::kEvict;
    std::vector<Key> members;
    if (!evicts) members.push_back(step.checkpoint.value);
    if (const OwnerRecord* owner = evicts ? sim.find_owner(step.owner.value) : nullptr) members = owner->checkpoints;
    if (members.empty()) return kNotThere;
    const ModelNeed& need = problem.needs[static_cast<std::size_t>(target.option)];
    for (const Key key : members) {
        const CheckpointRecord* checkpoint = sim.find_checkpoint(key);
        const bool fixed = is_fixed(need, key) && (key != need.source || !drops_redundant(step.kind));
        if (checkpoint == nullptr || !is_eligible(sim, problem, checkpoint->owner) || fixed) return kNotThere;
    }
    for (const Key key : members) {
        const CheckpointRecord& checkpoint = sim.model.checkpoints.at(key);
        const auto found = target.wants.find(key);
        ModelWant want{.frontier = checkpoint.frontier(), .device_pages = pages_for(checkpoint.frontier())};
        if (found != target.wants.end()) want = found->second;
        if (evicts && !want.survives) continue;
        if (const Expected no = lower(sim, key, want, step)) return no;
        target.wants[key] = want;
    }
    return {};
}

ModelTarget maximal_target(const ProgramSim& sim, const PlanningProblem& problem, int option) {
    ModelTarget target{.option = option};
    const ModelNeed& need = problem.needs[static_cast<std::size_t>(option)];
    for (const auto& [key, checkpoint] : sim.model.checkpoints)
        if (is_eligible(sim, problem, checkpoint.owner) && !is_fixed(need, key))
            target.wants[key] = {.survives = false};
    return target;
}

}  // namespace ninfer::sim
