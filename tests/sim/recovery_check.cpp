#include "tests/sim/recovery_check.h"

#include <algorithm>

#include "tests/sim/recovery_model.h"

namespace ninfer::sim {
namespace {

using Recipes = std::vector<RecoveryRecipe>;
using Ways = std::vector<ModelRecovery>;

ModelTarget identity_of(int option) { return {.option = option}; }

const ModelNeed& need_of(const PlanningProblem& problem, const ModelTarget& target) {
    return problem.needs[static_cast<std::size_t>(target.option)];
}

// Whom the session may ask about: who may be changed, and the sources with what leaves with them.
std::vector<Key> members(const ProgramSim& sim, const PlanningProblem& problem) {
    std::vector<Key> named;
    for (std::size_t i = 0; i < problem.needs.size(); ++i) {
        if (problem.left_out[i]) continue;
        named.push_back(problem.needs[i].source);
        named.insert(named.end(), problem.needs[i].leaving.begin(), problem.needs[i].leaving.end());
    }
    std::vector<Key> found;
    for (const auto& [key, checkpoint] : sim.model.checkpoints)
        if (is_eligible(sim, problem, checkpoint.owner) || contains(named, key)) found.push_back(key);
    return found;
}

class RecoveryCheck {
   public:
    RecoveryCheck(ProgramSim& sim, const PlanningProblem& problem, const ModelTarget& target)
        : sim_(sim), target_(target), model_(sim.model, need_of(problem, target), target) {}

    // `recipes` are of this target alone. Each restores less than all before it, and can be gone as it is told; and each way
    // that the model knows is there, or a better one. More rows than the model has are beginnings of bases: without
    // recurrent layers whoever lies on Host may also serve with less than it has, which restores less.
    void expect(Key checkpoint, const Recipes& recipes) {
        const Ways best = model_.best_of(checkpoint);
        const Ways all = model_.all_of(checkpoint);
        for (std::size_t i = 0; i < recipes.size(); ++i) {
            if (i > 0 && !(recipes[i].base_frontier < recipes[i - 1].base_frontier &&
                           recipes[i].to_device.bytes < recipes[i - 1].to_device.bytes))
                fail("a way that another one makes needless", best, recipes);
            expect_way(checkpoint, all, recipes[i]);
        }
        for (const ModelRecovery& way : best)
            if (std::ranges::none_of(recipes, [&](const RecoveryRecipe& found) { return covers(found, way); }))
                fail("a way is missing", best, recipes);
        count(checkpoint, best, recipes);
    }
    Ways best_of(Key checkpoint) const { return model_.best_of(checkpoint); }
    bool changes(Key checkpoint) const { return target_.wants.contains(checkpoint); }

   private:
    bool covers(const RecoveryRecipe& found, const ModelRecovery& way) const {
        return found.base_frontier >= way.base_frontier && found.to_device.bytes <= way.bytes(sim_.sizes);
    }
    void expect_way(Key checkpoint, const Ways& all, const RecoveryRecipe& found) {
        const CheckpointRecord& record = sim_.model.checkpoints.at(checkpoint);
        expect_equal(record.owner, found.owner.value, "owner of a recovery");
        expect_equal(std::int64_t{record.frontier()}, found.frontier, "frontier of a recovery");
        const auto named = std::ranges::find(all, found.base.value, &ModelRecovery::base);
        if (named == all.end()) throw SimFailure("a recovery names a base that cannot serve");
        const bool in_part = found.base_frontier < named->base_frontier;
        if (found.base_frontier > named->base_frontier || (in_part && sim_.has_images()))
            throw SimFailure("a base serves up to " + std::to_string(named->base_frontier) + ", not " +
                             std::to_string(found.base_frontier));
        const auto way = model_.recovery_from(named->base, static_cast<int>(found.base_frontier));
        expect_equal(way.bytes(sim_.sizes), found.to_device.bytes, "bytes to restore");
        expect_equal(std::int64_t{way.pages + (way.image ? 1 : 0)}, found.to_device.operations, "copies to restore");
        const int tails = way.base_frontier % 64 == 0 ? 0 : 1;
        expect_equal(std::int64_t{tails}, found.within_device.operations, "copies of a tail");
        expect_equal(static_cast<std::int64_t>(sim_.sizes.page_bytes) * tails, found.within_device.bytes,
                     "bytes of a tail");
        if (way.pages_needed > way.pages) throw SimFailure("a recovery tells less work than it is");
        if (way.pages_needed < way.pages) sim_.count(ProgramSituation::kRecoveryOverstated);
        if (in_part) sim_.count(ProgramSituation::kRecoveredInPart);
    }

    [[noreturn]] void fail(const char* what, const Ways& best, const Recipes& found) const {
        throw SimFailure(std::string(what) + ": expected" + text_of(best) + ", found" + text_of(found));
    }
    std::string text_of(const Ways& ways) const {
        std::string text;
        for (const ModelRecovery& way : ways) text += text_of(way.base, way.base_frontier, way.bytes(sim_.sizes));
        return text;
    }
    static std::string text_of(const Recipes& recipes) {
        std::string text;
        for (const RecoveryRecipe& way : recipes)
            text += text_of(way.base.value, way.base_frontier, way.to_device.bytes);
        return text;
    }
    static std::string text_of(Key base, std::int64_t frontier, std::int64_t bytes) {
        return " (" + std::to_string(base) + " up to " + std::to_string(frontier) + " for " + std::to_string(bytes) +
               " bytes)";
    }

    void count(Key checkpoint, const Ways& best, const Recipes& recipes) {
        const CheckpointRecord& record = sim_.model.checkpoints.at(checkpoint);
        if (recipes.size() > 1) sim_.count(ProgramSituation::kSeveralRecoveries);
        for (const ModelRecovery& way : best) {
            if (way.base == 0)
                sim_.count(ProgramSituation::kRecoveredFromRoot);
            else if (way.base_frontier == record.frontier())
                sim_.count(way.bytes(sim_.sizes) == 0 ? ProgramSituation::kReadyAtOnce
                                                      : ProgramSituation::kRestoredWhole);
            else
                sim_.count(ProgramSituation::kRecoveredFromAnother);
        }
    }

    ProgramSim& sim_;
    const ModelTarget& target_;
    RecoveryModel model_;
};

// Rows come target by target; those of a checkpoint together.
std::map<Key, Recipes> rows_of(const Recipes& recipes, std::int64_t target) {
    std::map<Key, Recipes> rows;
    Key last = 0;
    for (const RecoveryRecipe& recipe : recipes) {
        if (recipe.target != target) continue;
        Recipes& of_it = rows[recipe.checkpoint.value];
        if (!of_it.empty() && last != recipe.checkpoint.value) throw SimFailure("a checkpoint's rows lie apart");
        last = recipe.checkpoint.value;
        of_it.push_back(recipe);
    }
    return rows;
}

void expect_only(const std::vector<Key>& members, const std::map<Key, Recipes>& rows) {
    for (const auto& [key, recipes] : rows)
        if (!contains(members, key)) throw SimFailure("a recovery of a checkpoint that is not asked about");
}

bool same_cost(const Ways& left, const Ways& right, const ContextSizes& sizes) {
    return std::ranges::equal(left, right, [&](const ModelRecovery& one, const ModelRecovery& other) {
        return one.base_frontier == other.base_frontier && one.bytes(sizes) == other.bytes(sizes);
    });
}

void check_target(ProgramSim& sim, const PlanningProblem& problem, const ModelTarget& target,
                  const std::map<Key, Recipes>& rows) {
    RecoveryCheck check(sim, problem, target);
    const ModelTarget identity = identity_of(target.option);
    const RecoveryCheck before(sim, problem, identity);
    const auto asked = members(sim, problem);
    expect_only(asked, rows);
    for (const Key key : asked) {
        const auto found = rows.find(key);
        if (found != rows.end()) {
            check.expect(key, found->second);
        } else if (check.changes(key) || !same_cost(check.best_of(key), before.best_of(key), sim.sizes)) {
            throw SimFailure("a checkpoint differs from the identity, and no recovery is told");
        }
    }
    sim.count(ProgramSituation::kRecoveriesCompared);
}

}  // namespace

void check_recoveries(ProgramSim& sim, const PlanningProblem& problem, std::span<const KnownTarget> targets) {
    std::vector<TargetId> ids;
    for (const KnownTarget& known : targets) ids.push_back(known.id);
    TargetFacts facts;
    sim.begin(PartOperation::kAssessMany);
    if (!sim.attempt({}, [&] { return sim.session.assess_many(ids, facts); })) return;
    expect_equal(ids.size(), facts.assessments.size(), "assessed targets");
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const auto rows = rows_of(facts.recipes, static_cast<std::int64_t>(i));
        check_target(sim, problem, *targets[i].target, rows);
        const TargetAssessment alone = *sim.attempt({}, [&] { return sim.session.assess(ids[i]); });
        if (alone.peak != facts.assessments[i].peak || alone.status != facts.assessments[i].status)
            throw SimFailure("together a target is assessed in another way than alone");
    }
    const auto beyond = std::ranges::count_if(facts.recipes, [&](const RecoveryRecipe& recipe) {
        return recipe.target < 0 || recipe.target >= std::ssize(targets);
    });
    expect_equal(std::ptrdiff_t{0}, beyond, "recoveries of targets that were not asked about");
}

void check_baseline(ProgramSim& sim, const PlanningProblem& problem, int option) {
    sim.begin(PartOperation::kBaseline);
    const auto found = sim.attempt({}, [&] { return sim.session.baseline(option); });
    if (!found) return;
    const auto rows = rows_of(*found, 0);
    const auto asked = members(sim, problem);
    const ModelTarget identity = identity_of(option);
    RecoveryCheck check(sim, problem, identity);
    expect_only(asked, rows);
    for (const Key key : asked) {
        const auto of_it = rows.find(key);
        if (of_it == rows.end()) throw SimFailure("the baseline leaves a checkpoint out");
        check.expect(key, of_it->second);
    }
    sim.count(ProgramSituation::kBaselinesCompared);
}

}  // namespace ninfer::sim
