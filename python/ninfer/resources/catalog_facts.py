"""What the catalog knows about the boundaries of a prompt, for the capture policy."""

from __future__ import annotations

from ninfer.resources.capture_policy import Boundaries, CaptureFacts, grid_points, shared_frontiers
from ninfer.resources.catalog import Catalog
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.prefix_index import digests_at
from ninfer.resources.private_catalog import Cell
from ninfer.resources.program_view import PromptIdentity
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.session_index import session_name


def capture_facts(catalog: Catalog, prompt: PromptIdentity, key: ReuseKey, boundaries: Boundaries) -> CaptureFacts:
    options = catalog.options
    if not (options.enabled and key.publishes):
        return CaptureFacts()
    endpoint = _endpoint(catalog, prompt) if key.reads else None
    if options.max_shared_prefixes == 0:
        return CaptureFacts(endpoint=endpoint)
    grid = frozenset(grid_points(prompt.size)) if options.auto_prefix_grid else frozenset[int]()
    inside = {at for at in {*shared_frontiers(boundaries), *grid} if 0 < at < prompt.size}
    keys = digests_at(prompt, inside)
    on_grid = [(at, digest) for at, digest in keys if at in grid]
    repeated = catalog.demand.named_by_others(session_name(key), on_grid)
    return CaptureFacts(
        already_shared=frozenset(at for at, digest in keys if catalog.shared.holds(at, digest)),
        repeated=frozenset(at for at, _ in repeated),
        named=tuple(keys),
        endpoint=endpoint,
    )


def _endpoint(catalog: Catalog, prompt: PromptIdentity) -> int | None:
    """A start from there keeps it as an anchor anyway; a start below it passes it once more (D-24)."""
    for row in catalog.index.matching(prompt, prompt.size - 1):
        entry = catalog.entry_of_row[row]
        cell = catalog.place_of[entry.checkpoint]
        if isinstance(cell, Cell) and entry.kind is CheckpointKind.SESSION_ENDPOINT and not entry.doomed:
            return entry.frontier if catalog.keeps_endpoint(cell, entry) else None
    return None
