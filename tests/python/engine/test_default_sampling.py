"""Which sampling a request gets that names none."""

from __future__ import annotations

from ninfer.engine.sampling_params import SamplingParams, default_sampling
from ninfer.weights.model_files import GenerationDefaults


def test_sampling_turned_off_means_greedy_whatever_else_is_said() -> None:
    assert default_sampling(GenerationDefaults(do_sample=False, temperature=0.7)) == SamplingParams(temperature=0.0)


def test_recommendations_stand_over_neutral_values() -> None:
    found = default_sampling(GenerationDefaults(do_sample=True, temperature=0.6, top_k=20))
    assert found == SamplingParams(temperature=0.6, top_k=20, top_p=1.0, min_p=0.0)


def test_silent_files_get_moderate_sampling() -> None:
    found = default_sampling(GenerationDefaults())
    assert (found.temperature, found.top_k, found.top_p, found.min_p) == (0.8, 40, 0.95, 0.05)
