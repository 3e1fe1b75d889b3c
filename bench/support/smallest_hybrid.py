"""A random model of one recurrent layer: it computes millions of tokens per second, and its context is real."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from ninfer import native
from ninfer.engine.native_model import load_native_model
from ninfer.weights.open_model import open_model

VOCABULARY = 320
_WIDTH, _HEAD = 32, 16

_CONFIG = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "attention_bias": False,
    "dtype": "float32",
    "eos_token_id": 0,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": _WIDTH,
    "intermediate_size": _WIDTH,
    "layer_types": ["linear_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": _HEAD,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 1,
    "linear_value_head_dim": _HEAD,
    "max_position_embeddings": 1 << 20,
    "model_type": "qwen3_5_text",
    "num_attention_heads": 1,
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [4, 2, 2],
        "partial_rotary_factor": 0.5,
        "rope_theta": 10000.0,
        "rope_type": "default",
    },
    "tie_word_embeddings": True,
    "vocab_size": VOCABULARY,
}
_LAYER = {
    "input_layernorm.weight": (_WIDTH,),
    "post_attention_layernorm.weight": (_WIDTH,),
    "linear_attn.A_log": (1,),
    "linear_attn.dt_bias": (1,),
    "linear_attn.conv1d.weight": (3 * _HEAD, 1, 4),
    "linear_attn.in_proj_a.weight": (1, _WIDTH),
    "linear_attn.in_proj_b.weight": (1, _WIDTH),
    "linear_attn.in_proj_qkv.weight": (3 * _HEAD, _WIDTH),
    "linear_attn.in_proj_z.weight": (_HEAD, _WIDTH),
    "linear_attn.norm.weight": (_HEAD,),
    "linear_attn.out_proj.weight": (_WIDTH, _HEAD),
    "mlp.down_proj.weight": (_WIDTH, _WIDTH),
    "mlp.gate_proj.weight": (_WIDTH, _WIDTH),
    "mlp.up_proj.weight": (_WIDTH, _WIDTH),
}


def smallest_hybrid() -> native.ModelSource:
    numbers = np.random.default_rng(1)
    shapes = {"model.embed_tokens.weight": (VOCABULARY, _WIDTH), "model.norm.weight": (_WIDTH,)}
    shapes |= {f"model.layers.0.{name}": shape for name, shape in _LAYER.items()}
    weights = {name: 0.3 * numbers.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        save_file(weights, Path(folder) / "model.safetensors")
        (Path(folder) / "config.json").write_text(json.dumps(_CONFIG))
        return load_native_model(open_model(folder), "auto", 1, None)
