"""What one run of the checks is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TIERS = ("ci", "long")


@dataclass(frozen=True)
class Settings:
    """`seed` reaches every test as NINFER_TEST_SEED; `jobs` is how many compilers may run at once."""

    root: Path
    tier: str
    seed: int
    jobs: int

    def __post_init__(self) -> None:
        assert self.tier in TIERS, self.tier
        assert self.jobs >= 1, self.jobs

    @property
    def logs(self) -> Path:
        return self.root / "build" / "logs"

    def build(self, variant: str) -> Path:
        return self.root / "build" / variant
