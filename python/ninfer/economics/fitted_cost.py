"""Coefficients from measurements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ninfer.economics.prefill_cost import PrefillCost, attention_pairs
from ninfer.economics.transfer_cost import Numbers, TransferCost

# A sample tells about submitting if moving its bytes takes less than this share of its time.
_SUBMITTING_SHARE = 0.5


@dataclass(frozen=True)
class PrefillSample:
    """suffix tokens computed in one pass behind base ones."""

    base: int
    suffix: int
    ns: float


@dataclass(frozen=True)
class TransferSample:
    operations: int
    copied_bytes: int
    ns: float


@dataclass(frozen=True)
class Residual:
    """Of a fit: relative errors of its samples, median and largest."""

    median: float
    largest: float


def fitted_prefill(samples: Sequence[PrefillSample]) -> tuple[PrefillCost, Residual]:
    """The coefficients, none negative, with the smallest relative squared errors."""
    base = np.array([sample.base for sample in samples], dtype=np.float64)
    suffix = np.array([sample.suffix for sample in samples], dtype=np.float64)
    columns = np.column_stack([np.ones(len(samples)), suffix, attention_pairs(base, suffix)])
    measured = np.array([sample.ns for sample in samples])
    pass_ns, token_ns, pair_ns = _non_negative(columns, measured)
    cost = PrefillCost(float(pass_ns), float(token_ns), float(pair_ns))
    return cost, _residual(cost.of(base, suffix), measured)


def fitted_transfer(samples: Sequence[TransferSample]) -> tuple[TransferCost, Residual]:
    """The rate from the largest copies; what submitting takes from those that are too small to show the rate."""
    operations = np.array([sample.operations for sample in samples], dtype=np.float64)
    moved = np.array([sample.copied_bytes for sample in samples], dtype=np.float64)
    measured = np.array([sample.ns for sample in samples])
    large = moved >= moved.max() / 2
    ns_per_byte = float(np.median(measured[large] / moved[large]))
    small = moved * ns_per_byte < measured * _SUBMITTING_SHARE
    batch_ns, operation_ns = 0.0, 0.0
    if small.any():
        batch_ns, operation_ns = _non_negative(
            np.column_stack([np.ones(small.sum()), operations[small]]), measured[small]
        )
    cost = TransferCost(float(batch_ns), float(operation_ns), ns_per_byte)
    return cost, _residual(cost.of(operations, moved), measured)


def _non_negative(columns: Numbers, measured: Numbers) -> Numbers:
    """Least squares of relative errors: over all choices of which ones are zero, the best without a negative one."""
    scaled = columns / measured[:, None]
    best, best_error = np.zeros(columns.shape[1]), float(len(measured))
    for count in range(1, columns.shape[1] + 1):
        for used in itertools.combinations(range(columns.shape[1]), count):
            found, *_ = np.linalg.lstsq(scaled[:, used], np.ones(len(measured)), rcond=None)
            error = float(np.square(scaled[:, used] @ found - 1.0).sum())
            if (found >= 0).all() and error < best_error:
                best, best_error = np.zeros(columns.shape[1]), error
                best[list(used)] = found
    return best


def _residual(expected: Numbers, measured: Numbers) -> Residual:
    errors = np.abs(expected - measured) / measured
    return Residual(float(np.median(errors)), float(errors.max()))
