"""Small GGUF files with random tensors as llama.cpp's converter would lay them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

from tests.fixtures.seed import SEED

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FEED, VOCAB = 256, 4, 2, 64, 512, 96
KEY_HEADS, VALUE_HEADS = 2, 4
KEY_DIM, VALUE_DIM = KEY_HEADS * 32, VALUE_HEADS * 32
CONV_DIM = 2 * KEY_DIM + VALUE_DIM

Arrays = dict[str, NDArray[np.float32]]
Values = dict[str, Any]

LLAMA_VALUES: Values = {
    "llama.block_count": 1,
    "llama.context_length": 128,
    "llama.embedding_length": HIDDEN,
    "llama.feed_forward_length": FEED,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.tokens": [f"t{i}" for i in range(VOCAB)],
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.eot_token_id": 5,
}
QWEN35_VALUES: Values = {
    **{key.replace("llama.", "qwen35."): value for key, value in LLAMA_VALUES.items()},
    "qwen35.block_count": 2,
    "qwen35.attention.key_length": HEAD_DIM,
    "qwen35.attention.value_length": HEAD_DIM,
    "qwen35.rope.dimension_count": 16,
    "qwen35.rope.dimension_sections": [3, 3, 2, 0],
    "qwen35.full_attention_interval": 2,
    "qwen35.ssm.conv_kernel": 4,
    "qwen35.ssm.state_size": 32,
    "qwen35.ssm.group_count": KEY_HEADS,
    "qwen35.ssm.time_step_rank": VALUE_HEADS,
    "qwen35.ssm.inner_size": VALUE_DIM,
}


def random_arrays(shapes: dict[str, tuple[int, ...]]) -> Arrays:
    rng = np.random.default_rng(SEED)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: -np.exp(array) if name.endswith("ssm_a") else array for name, array in arrays.items()}


def llama_arrays() -> Arrays:
    layer = {
        "attn_norm.weight": (HIDDEN,),
        "attn_q.weight": (HEADS * HEAD_DIM, HIDDEN),
        "attn_k.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_output.weight": (HIDDEN, HEADS * HEAD_DIM),
        "ffn_norm.weight": (HIDDEN,),
        "ffn_gate.weight": (FEED, HIDDEN),
        "ffn_up.weight": (FEED, HIDDEN),
        "ffn_down.weight": (HIDDEN, FEED),
    }
    outside = {"token_embd.weight": (VOCAB, HIDDEN), "output_norm.weight": (HIDDEN,)}
    return random_arrays({**outside, **{f"blk.0.{name}": shape for name, shape in layer.items()}})


def qwen35_arrays() -> Arrays:
    both = {
        "attn_norm.weight": (HIDDEN,),
        "post_attention_norm.weight": (HIDDEN,),
        "ffn_gate.weight": (FEED, HIDDEN),
        "ffn_up.weight": (FEED, HIDDEN),
        "ffn_down.weight": (HIDDEN, FEED),
    }
    linear = {
        "attn_qkv.weight": (CONV_DIM, HIDDEN),
        "attn_gate.weight": (VALUE_DIM, HIDDEN),
        "ssm_conv1d.weight": (CONV_DIM, 4),
        "ssm_dt.bias": (VALUE_HEADS,),
        "ssm_a": (VALUE_HEADS,),
        "ssm_beta.weight": (VALUE_HEADS, HIDDEN),
        "ssm_alpha.weight": (VALUE_HEADS, HIDDEN),
        "ssm_norm.weight": (32,),
        "ssm_out.weight": (HIDDEN, VALUE_DIM),
    }
    full = {
        "attn_q.weight": (2 * HEADS * HEAD_DIM, HIDDEN),
        "attn_k.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_output.weight": (HIDDEN, HEADS * HEAD_DIM),
        "attn_q_norm.weight": (HEAD_DIM,),
        "attn_k_norm.weight": (HEAD_DIM,),
    }
    outside = {"token_embd.weight": (VOCAB, HIDDEN), "output_norm.weight": (HIDDEN,), "output.weight": (VOCAB, HIDDEN)}
    layers = {f"blk.0.{name}": shape for name, shape in (both | linear).items()}
    layers |= {f"blk.1.{name}": shape for name, shape in (both | full).items()}
    return random_arrays({**outside, **layers})


def write_gguf(path: Path, architecture: str, values: Values, arrays: Arrays, type_name: str = "F32") -> Path:
    """Matrices in the type `type_name`, everything else in F32."""
    writer = GGUFWriter(path, architecture)
    for key, value in values.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    for name, array in arrays.items():
        quantised = array.ndim == 2 and "conv1d" not in name
        kind = GGMLQuantizationType[type_name if quantised else "F32"]
        raw = stored(array, kind)
        writer.add_tensor(name, raw, raw_dtype=None if raw.dtype in (np.float16, np.float32) else kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def stored(array: NDArray[np.float32], kind: GGMLQuantizationType) -> NDArray[Any]:
    """`array` in the type; k-quants have no quantiser in Python, so their bytes are random with small scales."""
    try:
        return quantize(array, kind)
    except NotImplementedError:
        assert kind == GGMLQuantizationType.Q6_K
        rng = np.random.default_rng(SEED)
        blocks = rng.integers(0, 256, (array.shape[0], array.shape[1] // 256, 210), dtype=np.uint8)
        blocks[..., 208:] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        return blocks.reshape(array.shape[0], -1)


def stored_values(array: NDArray[np.float32], type_name: str) -> NDArray[np.float32]:
    kind = GGMLQuantizationType[type_name]
    return dequantize(stored(array, kind), kind).astype(np.float32)
