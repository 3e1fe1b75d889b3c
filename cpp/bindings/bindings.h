#pragma once

#include <nanobind/nanobind.h>

namespace ninfer {
class Program;
}

namespace ninfer::bindings {

void bind_errors(nanobind::module_& module);
void bind_weights(nanobind::module_& module);
void bind_sampling(nanobind::module_& module);
void bind_program(nanobind::module_& module);
// Parts of bind_program, which calls them: values first, so that signatures name them.
void bind_prompt_values(nanobind::module_& module);
void bind_prompts(nanobind::class_<Program>& program);
void bind_sequence_values(nanobind::module_& module);
void bind_sequences(nanobind::class_<Program>& program);
void bind_checkpoint_values(nanobind::module_& module);
void bind_checkpoints(nanobind::class_<Program>& program);
void bind_statistics_values(nanobind::module_& module);
void bind_statistics(nanobind::class_<Program>& program);
// Parts of bind_program too: sessions after it, for they name a program.
void bind_planning_values(nanobind::module_& module);
void bind_planning_sessions(nanobind::module_& module);
void bind_candidates(nanobind::class_<Program>& program);
void bind_transition_values(nanobind::module_& module);
void bind_transitions(nanobind::class_<Program>& program);
void bind_testing(nanobind::module_& module);
void bind_digest(nanobind::module_& module);
void bind_wake_up(nanobind::module_& module);

}  // namespace ninfer::bindings
