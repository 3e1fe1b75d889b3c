"""Which continuations agree furthest with a prompt at the marks. In arrays, since of one beginning all may do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ninfer.resources.catalog import Catalog
from ninfer.resources.private_catalog import Cell


def by_agreement(catalog: Catalog, agreement: NDArray[np.int64], own: int | None) -> Iterator[Cell]:
    """agreement: of PrefixMarks. The furthest first; of one length the session's own cell, then the last used."""
    numbers = np.flatnonzero(agreement)
    kept = catalog.cells.cells
    used_at = np.array([kept[number].used_at for number in numbers.tolist()], dtype=np.int64)
    foreign = numbers != (-1 if own is None else own)
    for number in numbers[np.lexsort((-used_at, foreign, -agreement[numbers]))]:
        yield kept[int(number)]
