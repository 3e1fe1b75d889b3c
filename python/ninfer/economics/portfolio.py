"""What the kept checkpoints are worth together, and what a target loses of it (E2, E3, D-20, D-21).

A *saving* is what a checkpoint spares whoever needs it: computing everything, less getting it back as it is kept. All
values are nanoseconds of this machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ninfer.economics.transfer_cost import Numbers

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewCheckpoint:
    """What is about to be published for everybody. saving: as it will be kept; demands: numbers of those that it
    matches; credited: whether its client wants it kept."""

    saving: float
    demands: frozenset[int] = frozenset()
    credited: bool = False


@dataclass(frozen=True)
class Portfolio:
    """n checkpoints of m owners.

    owner: int64 [n], 0..m-1. weight: f64 [m], how many savings the next use of a private owner is worth; 0 of a shared
    one. rebuild: f64 [n]. demands: for each observed request the checkpoints that it could have used, ascending.
    credited: checkpoints with a shared credit, each frontier and digest once.
    """

    owner: Indices
    weight: Numbers
    rebuild: Numbers
    demands: tuple[Indices, ...] = ()
    credited: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        assert self.owner.shape == self.rebuild.shape, (self.owner.shape, self.rebuild.shape)

    def saving(self, recovery: Numbers) -> Numbers:
        """f64 [..., n] of recoveries f64 [..., n]; what cannot be had back, infinity, saves nothing."""
        return np.maximum(0.0, self.rebuild - recovery)

    def public_value(self, saving: Numbers) -> Numbers:
        """f64 [...] of savings f64 [..., n]. An observed request counts with its best checkpoint alone."""
        value = saving[..., self.credited].sum(axis=-1)
        for matching in self.demands:
            if len(matching):
                value = value + saving[..., matching].max(axis=-1)
        return np.asarray(value, dtype=np.float64)

    def public_value_with(self, saving: Numbers, new: NewCheckpoint) -> Numbers:
        """The same if one more checkpoint was there."""
        value = saving[..., self.credited].sum(axis=-1) + new.saving * new.credited
        for number, matching in enumerate(self.demands):
            least = new.saving if number in new.demands else 0.0
            value = value + saving[..., matching].max(axis=-1, initial=least)
        return np.asarray(value, dtype=np.float64)

    def private_loss(self, before: Numbers, after: Numbers) -> Numbers:
        """f64 [...]: of each owner its worst lost saving, by its weight. before: f64 [n]; after: f64 [..., n]."""
        lost = np.maximum(0.0, before - after)
        flat = lost.reshape(math.prod(lost.shape[:-1]), lost.shape[-1])
        target, row = np.nonzero(flat)
        worst = np.zeros(len(flat) * len(self.weight))
        np.maximum.at(worst, target * len(self.weight) + self.owner[row], flat[target, row])
        worst = worst.reshape(*lost.shape[:-1], len(self.weight))
        return np.asarray(worst @ self.weight, dtype=np.float64)

    def future_loss(self, before: Numbers, after: Numbers) -> Numbers:
        """Of targets with savings `after` against their candidate's identity with savings `before`."""
        public = self.public_value(before) - self.public_value(after)
        return np.maximum(0.0, public) + self.private_loss(before, after)

    def net_gain(self, before: Numbers, after: Numbers, new: NewCheckpoint, immediate: Numbers) -> Numbers:
        """Of publishing for everybody, against doing without; only what is above 0 is worth it. Doubt is no gain: what
        is not finite counts as minus infinity."""
        public = self.public_value_with(after, new) - self.public_value(before)
        gain = public - self.private_loss(before, after) - immediate
        return np.where(np.isfinite(gain), gain, -np.inf)
