"""A model configuration from GGUF metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ninfer.config.config_fields import ConfigFields
from ninfer.config.config_value_error import ConfigValueError
from ninfer.config.hf_config import layer_types_every
from ninfer.config.model_config import MAX_LAYERS, LayerType, LlamaConfig, ModelConfig, Qwen35Config
from ninfer.config.rope_config import LinearRopeScaling, RopeConfig, RopeFrequencyFactors, RopeScaling
from ninfer.errors import ModelFileError

ARCHITECTURES = ("llama", "qwen35")
ROPE_FACTORS = "rope_freqs.weight"

# Dataclass field → metadata key below the architecture's name.
_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "layers": "block_count",
    "heads": "attention.head_count",
    "kv_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "max_context": "context_length",
    "rotary_dim": "rope.dimension_count",
    "theta": "rope.freq_base",
    "factor": "rope.scaling.factor",
    "layer_types": "attention.recurrent_layers",
    "linear_key_heads": "ssm.group_count",
    "linear_value_heads": "ssm.time_step_rank",
    "linear_key_head_dim": "ssm.state_size",
    "linear_value_head_dim": "ssm.inner_size",
    "conv_width": "ssm.conv_kernel",
}

# Keys that scale or cut something in llama.cpp's graph of these architectures, with the values that do nothing.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "expert_count": (0,),
    "expert_used_count": (0,),
    "attention.causal": (True,),
    "attention.sliding_window": (0,),
    "attention.scale": (0.0,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "rope.scaling.attn_factor": (0.0, 1.0),
    "rope.scaling.alpha": (0.0,),
    "embedding_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "logit_scale": (0.0, 1.0),
    "use_parallel_residual": (False,),
}


def config_from_gguf(
    metadata: Mapping[str, Any], file: Path, vocab_rows: int, tied: bool, rope_factors: tuple[float, ...] | None
) -> ModelConfig:
    """The configuration of a GGUF file of architecture llama or qwen35.

    `vocab_rows` are the rows of its embedding, `tied` says that it has no output matrix, `rope_factors` are the values
    of `rope_freqs.weight`. Raises ModelFileError for everything unknown, missing, impossible or unsupported.
    """
    architecture = ConfigFields(metadata, file).text("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ModelFileError(file, "general.architecture", " or ".join(ARCHITECTURES), repr(architecture))
    prefix = architecture + "."
    own = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    fields = ConfigFields(own, file, prefix)
    for key, neutral in _NEUTRAL.items():
        fields.must_be(key, *neutral)
    fields.must_be("vocab_size", vocab_rows)
    with fields.naming(_KEYS), _naming_rope_factors(file):
        sizes = _shared_sizes(fields, architecture, rope_factors)
        sizes |= {"vocab_size": vocab_rows, "tied_embeddings": tied}
        return LlamaConfig(**sizes) if architecture == "llama" else _qwen35(fields, sizes)


@contextmanager
def _naming_rope_factors(file: Path) -> Iterator[None]:
    """Errors of the one value that is a tensor and so has no metadata key."""
    try:
        yield
    except ConfigValueError as error:
        if not error.field.startswith("factors"):
            raise
        key = error.field.replace("factors", ROPE_FACTORS)
        raise ModelFileError(file, key, error.expected, error.found) from error


def _shared_sizes(fields: ConfigFields, architecture: str, rope_factors: tuple[float, ...] | None) -> dict[str, Any]:
    heads, hidden = fields.size("attention.head_count"), fields.size("embedding_length")
    if fields.get("attention.key_length") is None and hidden % heads:
        fields.fail("attention.head_count", f"a divisor of embedding_length {hidden}", heads)
    head_dim = fields.size("attention.key_length", hidden // heads)
    fields.must_be("attention.value_length", head_dim)
    layers = fields.size("block_count") - fields.integer("nextn_predict_layers", 0)
    if layers < 1:
        fields.fail("block_count", "more than nextn_predict_layers", fields.get("block_count"))
    rotary_dim = fields.integer("rope.dimension_count", head_dim)
    scaling = _scaling(fields, rope_factors)
    return {
        "hidden_size": hidden,
        "intermediate_size": fields.size("feed_forward_length"),
        "layers": layers,
        "heads": heads,
        "kv_heads": _kv_heads(fields, heads),
        "head_dim": head_dim,
        "rms_norm_eps": fields.number("attention.layer_norm_rms_epsilon"),
        "rope": RopeConfig(fields.number("rope.freq_base", 10000.0), rotary_dim, scaling),
        "max_context": fields.integer("context_length"),
    }


def _kv_heads(fields: ConfigFields, heads: int) -> int:
    """One number, or one per layer; linear attention layers may say 0."""
    if not isinstance(fields.get("attention.head_count_kv"), list):
        return fields.integer("attention.head_count_kv", heads)
    counts: set[int] = set()
    for count in fields.items("attention.head_count_kv") or ():
        if not isinstance(count, int) or isinstance(count, bool):
            fields.fail("attention.head_count_kv", "integers", repr(count))
        counts.add(count)
    if len(counts - {0}) != 1:
        fields.fail("attention.head_count_kv", "one count for all layers", sorted(counts))
    return max(counts)


def _scaling(fields: ConfigFields, rope_factors: tuple[float, ...] | None) -> RopeScaling | None:
    kind = fields.text("rope.scaling.type", "linear")
    if kind not in ("none", "linear"):
        fields.fail("rope.scaling.type", "none or linear", repr(kind))
    factor = fields.number("rope.scaling.factor", fields.number("rope.scale_linear", 0.0))
    divides = kind == "linear" and factor not in (0.0, 1.0)
    if rope_factors is not None:
        shared = factor if divides else 1.0
        return RopeFrequencyFactors(tuple(shared * one for one in rope_factors))
    return LinearRopeScaling(factor) if divides else None


def _qwen35(fields: ConfigFields, sizes: dict[str, Any]) -> Qwen35Config:
    value_heads, inner = fields.size("ssm.time_step_rank"), fields.size("ssm.inner_size")
    if inner % value_heads:
        fields.fail("ssm.inner_size", f"a multiple of ssm.time_step_rank {value_heads}", inner)
    return Qwen35Config(
        **sizes,
        layer_types=_layer_types(fields, sizes["layers"]),
        linear_key_heads=fields.integer("ssm.group_count"),
        linear_value_heads=value_heads,
        linear_key_head_dim=fields.integer("ssm.state_size"),
        linear_value_head_dim=inner // value_heads,
        conv_width=fields.integer("ssm.conv_kernel"),
        mrope_section=_mrope_section(fields),
    )


def _layer_types(fields: ConfigFields, layers: int) -> tuple[LayerType, ...]:
    recurrent = fields.items("attention.recurrent_layers")
    if recurrent is None:
        return layer_types_every(fields.size("full_attention_interval", 4), layers)
    # Prediction layers come after the model's own and are not part of it.
    own = recurrent[: min(layers, MAX_LAYERS)]
    return tuple("linear_attention" if one else "full_attention" for one in own)


def _mrope_section(fields: ConfigFields) -> tuple[int, ...] | None:
    sections = fields.items("rope.dimension_sections")
    if sections is None:
        return None
    sizes = tuple(size for size in sections if isinstance(size, int) and size >= 0)
    if len(sections) not in (3, 4) or len(sizes) != len(sections):
        fields.fail("rope.dimension_sections", "three or four sizes >= 0", list(sections))
    return sizes[:3]
