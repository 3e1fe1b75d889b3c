#pragma once

// Facts of planning as tables of int64 for NumPy: one row per target or recovery, one named column per fact. Handles are
// the same bits as everywhere else.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "cpp/program/planning_session.h"

namespace ninfer::bindings {

using FactRows = nanobind::ndarray<nanobind::numpy, std::int64_t, nanobind::ndim<2>>;

std::vector<std::string> assessment_columns();
std::vector<std::string> recovery_columns();
std::vector<std::string> degradation_columns();

FactRows assessment_rows(std::span<const TargetAssessment> assessments);
FactRows recovery_rows(std::span<const RecoveryRecipe> recipes);
FactRows degradation_rows(std::span<const Degradation> steps);

}  // namespace ninfer::bindings
