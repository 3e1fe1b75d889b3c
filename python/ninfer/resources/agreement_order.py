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
    places = [catalog.place_of_marks(row) for row in rows.tolist()]
    used_at = np.array([place.used_at for place in places], dtype=np.int64)
    foreign = rows != (-1 if own is None else own)
    for number in np.lexsort((-used_at, foreign, -agreement[rows])).tolist():
        yield places[number], int(agreement[rows[number]])
