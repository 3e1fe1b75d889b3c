// Memory that runs out in a transition: before the first mutation an exception that has changed nothing, afterwards the end
// of the process, whichever allocation it is. Never a state that nobody can explain.

#include <sys/wait.h>

#include "tests/cpp/program/planning_fixture.h"
#include "tests/support/counting_new.h"

namespace ninfer {
namespace {

using testing_support::allocations_left;
using testing_support::kUnlimited;
using testing_support::PlanningTest;

enum Ending : int { kDone = 10, kDoneAllTheSame = 11, kRefusedCleanly = 12, kChanged = 13 };

class TransactionMemoryTest : public PlanningTest {
   protected:
    // An admission that evicts, demotes, restores and copies a tail.
    ContextPlan seal_everything() {
        build({.pages = 12, .checkpoint_slots = 4, .host_pages = 12});
        auto text = world().make_tokens(150);
        for (auto& token : text) token %= 16;  // it counts them, and that is the world's vocabulary
        const auto source = world().endpoint(text);
        must(start_copy(state(), source, Tier::kHost));
        world().settle();
        must(drop(state(), source, Tier::kDevice));
        const auto demoted = world().endpoint(world().make_tokens(256));
        const auto evicted = world().endpoint(world().make_tokens(140));
        const auto prompt = World::joined(text, world().make_tokens(10));
        const Publication publication = AdmissionPublication{candidates(prompt, {{source}}).back(),
                                                             {.tokens = 64 * 8, .count_tokens = true, .captures = 1}};
        return must(session().seal(degrade(ask(publication), {pages_to_host(demoted), evict(evicted)})));
    }
    // Carries the plan out with so many allocations; those of the test do not count.
    static Ending carry_out(World& world, ContextPlan plan, std::int64_t allocations) {
        const std::uint64_t before = world.state.fingerprint();
        std::optional<ResourceResult> ended;
        try {
            allocations_left = allocations;
            auto started = start_transaction(world.state, std::move(plan), {});
            while (started && !started.value()) {
                const auto left = std::exchange(allocations_left, kUnlimited);
                world.engine->complete_all();
                allocations_left = left;
                poll_copies(world.state, SIZE_MAX);
                started = advance_transaction(world.state);
            }
            ended = must(std::move(started));
        } catch (const std::bad_alloc&) {
            allocations_left = kUnlimited;
            world.state.check_invariants();
            return world.state.fingerprint() == before ? kRefusedCleanly : kChanged;
        }
        const bool all_used = std::exchange(allocations_left, kUnlimited) == kUnlimited;
        world.expect_all_bytes();
        return all_used ? kDoneAllTheSame : kDone;
    }
};

TEST_F(TransactionMemoryTest, EveryAllocationOfAnAdmissionRefusesCleanlyOrStopsTheProcess) {
    std::map<std::string, int> endings;
    bool done = false;
    for (std::int64_t allocations = 0; !done; ++allocations) {
        ASSERT_LT(allocations, 5000);
        ContextPlan plan = seal_everything();
        int status = 0;
        const auto is_explained = [&](int ended) {
            status = ended;
            return WIFSIGNALED(ended) ? WTERMSIG(ended) == SIGABRT : WEXITSTATUS(ended) != kChanged;
        };
        EXPECT_EXIT(
            {
                const Ending ending = carry_out(world(), std::move(plan), allocations);
                std::fprintf(stderr, "no half of a change\n");
                std::_Exit(ending);
            },
            is_explained, "memory ran out in the middle of a change|no half of a change")
            << "with " << allocations << " allocations";
        done = WIFEXITED(status) && WEXITSTATUS(status) == kDone;
        ++endings[WIFSIGNALED(status) ? "stopped" : WEXITSTATUS(status) == kRefusedCleanly ? "refused" : "done"];
    }
    EXPECT_LE(5, endings["refused"]);
    EXPECT_LE(20, endings["stopped"]);
    for (const auto& [ending, count] : endings) RecordProperty(ending, count);
}

// The same plan, refused for want of memory and sealed again, goes through.
TEST_F(TransactionMemoryTest, ARefusedStartCanBeRepeated) {
    for (const std::int64_t allocations : {0, 1, 2, 3, 4}) {
        ContextPlan plan = seal_everything();
        ASSERT_EQ(carry_out(world(), std::move(plan), allocations), kRefusedCleanly);
        const Publication next = root(64);
        commit(ask(next));
        world().state.check_invariants();
    }
}

}  // namespace
}  // namespace ninfer
