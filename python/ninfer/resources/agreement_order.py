"""What agrees furthest with a prompt at the marks. In arrays, since of one beginning all may do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ninfer.resources.catalog import Catalog, Place


def by_agreement(catalog: Catalog, agreement: NDArray[np.int64], own: int | None) -> Iterator[tuple[Place, int]]:
    """agreement: of PrefixMarks. Places with their tokens, the furthest first; of one length the session's own cell,
    then the last used."""
    rows = np.flatnonzero(agreement)
    cells, shared = catalog.cells.cells, catalog.shared
    count = len(cells)
    used = [cells[row].used_at if row < count else shared[row - count].used_at for row in rows.tolist()]
    foreign = rows != (-1 if own is None else own)
    for row in rows[np.lexsort((-np.array(used, dtype=np.int64), foreign, -agreement[rows]))].tolist():
        yield (cells[row] if row < count else shared[row - count]), int(agreement[row])
