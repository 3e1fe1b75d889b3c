"""The options of the prompt cache, for the commands that answer more than once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from ninfer.cli.flag_groups import auto_or_count, count, flag, switch


@dataclass(frozen=True)
class CacheFlags:
    """Fields of `EngineOptions` under their own names, with its defaults."""

    context_cache: Annotated[bool, switch("context-cache", "Whether computed prompts are kept and reused at all.")] = (
        True
    )
    device_state_slots: Annotated[
        int, count("device-state-slots", "State images kept on the device beside those of running requests.")
    ] = 8
    host_cache_mib: Annotated[
        Any,
        flag(
            "host-cache-mib",
            "Memory for what leaves the device, in MiB.",
            parser=auto_or_count,
            metavar="auto|MIB",
        ),
    ] = "auto"
    max_private_continuations: Annotated[int, count("max-private-continuations", "Conversations that are kept.")] = 256
    max_shared_prefixes: Annotated[
        int, count("max-shared-prefixes", "Beginnings kept that many conversations share.")
    ] = 256
    max_long_anchors_per_continuation: Annotated[
        int, count("max-long-anchors-per-continuation", "Earlier points kept of one conversation.")
    ] = 8
    auto_long_anchors: Annotated[
        int, count("auto-long-anchors", "Last messages of a conversation at which such points are made.")
    ] = 8
    auto_prefix_grid: Annotated[
        bool, switch("auto-prefix-grid", "Whether shared beginnings are also made at fixed distances.")
    ] = False
    endpoint_anchors: Annotated[
        bool, switch("endpoint-anchors", "Whether a conversation that goes on keeps its earlier end.")
    ] = True

    def as_options(self) -> dict[str, Any]:
        """Fields of EngineOptions."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


CACHE_FLAG_NAMES = tuple(field.name for field in fields(CacheFlags))
