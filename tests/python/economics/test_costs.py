"""Prices against the formulas of the design, worked out by hand or by counting."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ninfer.config.hf_config import config_from_hf
from ninfer.config.model_config import ModelConfig
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.economics.calibration import Calibration, CalibrationFile, MachineKey, prefill_signature
from ninfer.economics.fitted_cost import PrefillSample, Residual, TransferSample, fitted_prefill, fitted_transfer
from ninfer.economics.generic_cost import generic_cost
from ninfer.economics.machine_cost import MachineCost
from ninfer.economics.prefill_cost import PrefillCost, attention_pairs
from ninfer.economics.transfer_cost import TransferCost
from tests.fixtures.seed import SEED


def test_attention_pairs_are_those_of_a_causal_mask() -> None:
    for base in (0, 1, 5):
        for suffix in (0, 1, 2, 7):
            counted = sum(key <= query for query in range(base, base + suffix) for key in range(base + suffix))
            assert attention_pairs(base, suffix) == counted, (base, suffix)


def test_copies_cost_what_submitting_or_moving_takes() -> None:
    cost = TransferCost(batch_ns=100, operation_ns=10, ns_per_byte=0.5)
    found = cost.of([0, 1, 3, 3], [0, 10, 10, 1000])
    assert found.tolist() == [0, 110, 130, 500]


def test_computing_costs_by_pass_token_and_pair() -> None:
    cost = PrefillCost(pass_ns=1000, token_ns=10, pair_ns=1)
    assert cost.of([0, 4, 4], [3, 0, 2]).tolist() == [1000 + 30 + 6, 0, 1000 + 20 + 11]
    assert cost.split(2) == 2000


def test_rows_are_priced_by_their_columns() -> None:
    prefill = PrefillCost(0, 10, 0)
    cost = MachineCost(TransferCost(1, 0, 0), TransferCost(2, 0, 0), TransferCost(4, 0, 0), prefill)
    names = ["reused_tokens", "computed_tokens", "to_host_operations", "to_host_bytes"]
    names += ["to_device_operations", "to_device_bytes", "within_device_operations", "within_device_bytes"]
    columns = {name: place for place, name in enumerate(names)}
    rows = np.array([[5, 3, 1, 9, 0, 0, 1, 9], [0, 8, 0, 0, 0, 0, 0, 0]])
    assert cost.immediate(rows, columns).tolist() == [1 + 4 + 30, 80]
    columns = {"base_frontier": 0, "frontier": 1, "to_device_operations": 2, "to_device_bytes": 3}
    assert cost.recovery(np.array([[0, 7, 0, 0], [5, 7, 2, 1]]), columns).tolist() == [70, 22]


def test_fits_find_the_coefficients_that_made_the_samples() -> None:
    dice = random.Random(SEED)
    prefill = PrefillCost(dice.uniform(1e5, 1e6), dice.uniform(1e4, 1e5), dice.uniform(1, 10))
    lengths = [(0, 64), (0, 512), (0, 2048), (4096, 64), (4096, 512), (16384, 512), (16384, 2048)]
    cost, residual = fitted_prefill([PrefillSample(*one, float(prefill.of(*one))) for one in lengths])
    assert cost.pass_ns == pytest.approx(prefill.pass_ns) and cost.token_ns == pytest.approx(prefill.token_ns)
    assert cost.pair_ns == pytest.approx(prefill.pair_ns) and residual.largest < 1e-6
    transfer = TransferCost(dice.uniform(1e4, 1e5), dice.uniform(1e3, 1e4), dice.uniform(0.05, 0.5))
    sizes = [(count, count * 64) for count in (1, 2, 8, 64)] + [(count, count << 20) for count in (16, 64)]
    found, residual = fitted_transfer([TransferSample(*one, float(transfer.of(*one))) for one in sizes])
    assert found.ns_per_byte == pytest.approx(transfer.ns_per_byte)
    assert found.batch_ns == pytest.approx(transfer.batch_ns) and found.operation_ns == pytest.approx(
        transfer.operation_ns
    )
    assert residual.largest < 1e-6


def test_fits_have_no_negative_coefficient_and_say_how_wrong_they_are() -> None:
    """Samples that get cheaper with each token."""
    cost, residual = fitted_prefill([PrefillSample(0, 10, 100.0), PrefillSample(0, 100, 50.0)])
    assert min(cost.pass_ns, cost.token_ns, cost.pair_ns) >= 0
    assert residual.largest > 0.1


def demo_config() -> ModelConfig:
    return config_from_hf(json.loads((HYBRID_DIRECTORY / "config.json").read_text()), HYBRID_DIRECTORY / "config.json")


def test_what_was_measured_is_found_again_for_its_machine_and_model_only(tmp_path: Path) -> None:
    config = demo_config()
    generic = generic_cost(config, threads=2)
    machine = MachineKey("a processor", "avx2", 2)
    signature = prefill_signature(config, "q8", "bf16")
    file = CalibrationFile(tmp_path / "not there yet")
    assert file.cost(machine, signature, generic) == generic
    copy, prefill = TransferCost(1, 2, 3), PrefillCost(4, 5, 6)
    residuals = {"prefill": Residual(0.1, 0.2)}
    file.keep(Calibration(machine, signature, MachineCost(copy, copy, copy, prefill), residuals))
    assert file.cost(machine, signature, generic) == MachineCost(copy, copy, copy, prefill, "calibrated")
    other_weights = prefill_signature(config, "bf16", "bf16")
    assert other_weights != signature
    assert file.cost(machine, other_weights, generic) == MachineCost(copy, copy, copy, generic.prefill, "calibrated")
    assert file.cost(MachineKey("a processor", "avx2", 4), signature, generic) == generic


GOOD = {"batch_ns": 1.0, "operation_ns": 2.0, "ns_per_byte": 3.0}
MACHINE = MachineKey("p", "i", 1)


@pytest.mark.parametrize(
    "damage",
    [
        {"batch_ns": math.nan},
        {"batch_ns": math.inf},
        {"operation_ns": -1.0},
        {"ns_per_byte": "3"},
        {"ns_per_byte": None},
        {"ns_per_byte": True},
        {"ns_per_byte": [1]},
        {"more": 1.0},
    ],
)
def test_what_is_no_price_is_generic(tmp_path: Path, damage: dict[str, object]) -> None:
    generic = generic_cost(demo_config(), threads=1)
    prefill = {"pass_ns": 1.0, "token_ns": 1.0, "pair_ns": 1.0}
    bad = [{**GOOD, **damage}, {"batch_ns": 1.0}, [], None]
    for one in bad:
        kept = {"format": 1, "transfers": {MACHINE.text(): {"to_host": one, "to_device": GOOD}}, "prefill": {}}
        file = CalibrationFile(tmp_path)
        file.path.write_text(json.dumps(kept))
        expected = replace(generic, to_device=TransferCost(1.0, 2.0, 3.0), source="calibrated")
        assert file.cost(MACHINE, "s", generic) == expected, one
    values = list(damage.values())
    kept = {
        "format": 1,
        "transfers": {MACHINE.text(): 7},
        "prefill": {f"{MACHINE.text()} / s": {**prefill, "pass_ns": values[0]}},
    }
    if damage != {"more": 1.0}:
        file.path.write_text(json.dumps(kept))
        assert file.cost(MACHINE, "s", generic) == generic


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": 2}', '{"format": 1, "transfers": 3}', "\x00"])
def test_a_file_that_says_nothing_is_none(tmp_path: Path, content: str) -> None:
    generic = generic_cost(demo_config(), threads=1)
    file = CalibrationFile(tmp_path)
    file.path.write_text(content)
    assert file.cost(MachineKey("p", "i", 1), "s", generic) == generic
    file.keep(Calibration(MachineKey("p", "i", 1), "s", generic, {}))
    assert file.cost(MachineKey("p", "i", 1), "s", generic).source == "calibrated"
