"""Rotary embedding from a Hugging Face configuration.

Written as `rope_parameters`, or in older files as `rope_scaling` beside `rope_theta`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.config.config_fields import ConfigFields
from ninfer.config.rope_config import LinearRopeScaling, Llama3RopeScaling, RopeConfig, RopeScaling

DEFAULT_THETA = 10000.0
ROPE_TYPES = ("default", "linear", "llama3")


@dataclass(frozen=True)
class HfRope:
    """The rotation and, where the file has it, the split of the pairs over time, height and width."""

    rope: RopeConfig
    mrope_section: tuple[int, ...] | None


def rope_from_hf(fields: ConfigFields, head_dim: int, default_partial: float) -> HfRope:
    """Reads the rotation of a text configuration; ModelFileError for any rope type but default, linear and llama3."""
    # transformers lets a non-empty rope_scaling win over rope_parameters.
    rope = fields.section("rope_scaling" if fields.get("rope_scaling") else "rope_parameters")
    rope = rope or ConfigFields({}, fields.file, "rope_parameters.")
    for layer_type in ("full_attention", "sliding_attention", "linear_attention"):
        rope.must_be(layer_type)
    theta = rope.number("rope_theta", fields.number("rope_theta", DEFAULT_THETA))
    partial = rope.number("partial_rotary_factor", fields.number("partial_rotary_factor", default_partial))
    # Before it is multiplied, so that no product can overflow.
    if not 0 < partial <= 1:
        rope.fail("partial_rotary_factor", "above 0 and at most 1", partial)
    if head_dim % 2 and partial == 1.0:
        fields.fail("head_dim", "an even number of features to rotate", head_dim)
    rope_keys = {"theta": "rope_theta", "original_max_position": "original_max_position_embeddings"}
    with rope.naming({**rope_keys, "rotary_dim": "partial_rotary_factor"}):
        config = RopeConfig(theta, int(head_dim * partial), _scaling(rope))
    return HfRope(config, _mrope_section(rope))


def _scaling(rope: ConfigFields) -> RopeScaling | None:
    rope_type = rope.text("rope_type", rope.text("type", "default"))
    if rope_type == "default":
        return None
    if rope_type == "linear":
        return LinearRopeScaling(rope.number("factor"))
    if rope_type == "llama3":
        return Llama3RopeScaling(
            factor=rope.number("factor"),
            low_freq_factor=rope.number("low_freq_factor"),
            high_freq_factor=rope.number("high_freq_factor"),
            original_max_position=rope.integer("original_max_position_embeddings"),
        )
    rope.fail("rope_type", "one of " + ", ".join(ROPE_TYPES), repr(rope_type))


def _mrope_section(rope: ConfigFields) -> tuple[int, ...] | None:
    section = rope.items("mrope_section")
    if section is None:
        return None
    sizes = [size for size in section if isinstance(size, int) and not isinstance(size, bool) and size >= 0]
    if len(section) != 3 or len(sizes) != 3:
        rope.fail("mrope_section", "three sizes >= 0", list(section))
    return tuple(sizes)
