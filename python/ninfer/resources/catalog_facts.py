"""What the catalog knows about the boundaries of a prompt, for the capture policy."""

from __future__ import annotations

from ninfer.resources.capture_policy import Boundaries, CaptureFacts, grid_points, shared_frontiers
from ninfer.resources.catalog import Catalog
from ninfer.resources.prefix_index import digests_at
from ninfer.resources.program_view import PromptIdentity
from ninfer.resources.reuse_key import ReuseKey
from ninfer.resources.session_index import session_name


def capture_facts(catalog: Catalog, prompt: PromptIdentity, key: ReuseKey, boundaries: Boundaries) -> CaptureFacts:
    options = catalog.options
    if not (options.enabled and key.publishes and options.max_shared_prefixes):
        return CaptureFacts()
    grid = frozenset(grid_points(prompt.size)) if options.auto_prefix_grid else frozenset[int]()
    inside = {at for at in {*shared_frontiers(boundaries), *grid} if 0 < at < prompt.size}
    keys = digests_at(prompt, inside)
    named = tuple((at, digest) for at, digest in keys if at in grid)
    repeated = catalog.demand.named_by_others(session_name(key), named)
    return CaptureFacts(
        already_shared=frozenset(at for at, digest in keys if catalog.shared.holds(at, digest)),
        repeated=frozenset(at for at, _ in repeated),
        named=named,
    )
