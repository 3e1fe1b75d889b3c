"""What copying costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TransferCost:
    """One direction. batch_ns: of any copying at all; operation_ns: of each piece; ns_per_byte: the reciprocal rate."""

    batch_ns: float
    operation_ns: float
    ns_per_byte: float

    def of(self, operations: npt.ArrayLike, copied_bytes: npt.ArrayLike) -> Numbers:
        """Nanoseconds, elementwise. Submitting and moving overlap, so the longer one counts (E1)."""
        counts = np.asarray(operations, dtype=np.float64)
        moved = np.asarray(copied_bytes, dtype=np.float64)
        submitting = self.batch_ns + counts * self.operation_ns
        return np.where(counts > 0, np.maximum(submitting, moved * self.ns_per_byte), 0.0)
