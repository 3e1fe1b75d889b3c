"""Rotary position embedding: base, width and frequency scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from ninfer.config.config_value_error import require

# The core reduces angles (position times frequency) exactly up to here and asserts that none is larger
# (cpp/ops/rope_table.cpp). It bounds positions as well, because the first frequency of every usual model is 1.
MAX_ROPE_ANGLE = 1 << 22


@dataclass(frozen=True)
class LinearRopeScaling:
    """Every frequency divided by `factor` (position interpolation)."""

    factor: float

    def __post_init__(self) -> None:
        require(self.factor > 0, "factor", "> 0", self.factor)


@dataclass(frozen=True)
class Llama3RopeScaling:
    """Low frequencies divided by `factor`, high ones kept, a smooth ramp between (Llama 3.1's rule).

    Wavelengths are compared with `original_max_position` (tokens) divided by the two frequency factors.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position: int

    def __post_init__(self) -> None:
        require(self.factor > 0, "factor", "> 0", self.factor)
        require(self.low_freq_factor > 0, "low_freq_factor", "> 0", self.low_freq_factor)
        require(
            self.high_freq_factor > self.low_freq_factor,
            "high_freq_factor",
            f"> low_freq_factor {self.low_freq_factor}",
            self.high_freq_factor,
        )
        require(self.original_max_position > 0, "original_max_position", "> 0", self.original_max_position)


@dataclass(frozen=True)
class RopeFrequencyFactors:
    """Frequency i divided by `factors[i]`: how GGUF files carry any scaling rule, already worked out."""

    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        for index, factor in enumerate(self.factors):
            require(math.isfinite(factor) and factor > 0, f"factors[{index}]", "finite and > 0", factor)


RopeScaling: TypeAlias = LinearRopeScaling | Llama3RopeScaling | RopeFrequencyFactors


@dataclass(frozen=True)
class RopeConfig:
    """The first `rotary_dim` features of each head are rotated, halves paired: feature i with i + rotary_dim / 2."""

    theta: float
    rotary_dim: int
    scaling: RopeScaling | None = None

    def __post_init__(self) -> None:
        require(math.isfinite(self.theta) and self.theta > 0, "theta", "finite and > 0", self.theta)
        require(self.rotary_dim > 0 and self.rotary_dim % 2 == 0, "rotary_dim", "even and > 0", self.rotary_dim)
        if isinstance(self.scaling, RopeFrequencyFactors):
            count = len(self.scaling.factors)
            require(count == self.rotary_dim // 2, "factors", f"{self.rotary_dim // 2} factors", count)
        self._check_frequencies()

    def _check_frequencies(self) -> None:
        """Refuses frequencies that turn too far within one position, and names the field that makes them so."""
        plain = _plain_frequencies(self)
        require(max(plain) <= MAX_ROPE_ANGLE, "theta", f"frequencies <= {MAX_ROPE_ANGLE}", self.theta)
        scaled = inverse_frequencies(self)
        fastest = max(range(len(scaled)), key=scaled.__getitem__)
        field, found = "factor", getattr(self.scaling, "factor", None)
        if isinstance(self.scaling, RopeFrequencyFactors):
            field, found = f"factors[{fastest}]", self.scaling.factors[fastest]
        require(scaled[fastest] <= MAX_ROPE_ANGLE, field, f"frequencies <= {MAX_ROPE_ANGLE}", found)


def _plain_frequencies(rope: RopeConfig) -> list[float]:
    exponents = [-2.0 * i / rope.rotary_dim for i in range(rope.rotary_dim // 2)]
    try:
        return [rope.theta**exponent for exponent in exponents]
    except OverflowError:
        return [math.inf] * len(exponents)


def inverse_frequencies(rope: RopeConfig) -> tuple[float, ...]:
    """Radians per position of the rotary_dim / 2 feature pairs, scaling applied, computed in f64."""
    plain = _plain_frequencies(rope)
    scaling = rope.scaling
    if scaling is None:
        return tuple(plain)
    if isinstance(scaling, LinearRopeScaling):
        return tuple(frequency / scaling.factor for frequency in plain)
    if isinstance(scaling, RopeFrequencyFactors):
        return tuple(frequency / factor for frequency, factor in zip(plain, scaling.factors, strict=True))
    return tuple(_llama3_frequency(frequency, scaling) for frequency in plain)


def _llama3_frequency(frequency: float, scaling: Llama3RopeScaling) -> float:
    wavelength = 2.0 * math.pi / frequency
    if wavelength < scaling.original_max_position / scaling.high_freq_factor:
        return frequency
    if wavelength > scaling.original_max_position / scaling.low_freq_factor:
        return frequency / scaling.factor
    turns = scaling.original_max_position / wavelength
    smooth = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency
