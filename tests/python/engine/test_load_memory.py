"""Loading packs tensor by tensor: anonymous memory stays below packed size + largest tensor + 150 MB."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.tiny_tokenizer import write_tiny_tokenizer

HIDDEN, INTERMEDIATE, LAYERS, VOCAB = 1024, 2816, 6, 32000
SLACK_BYTES = 150_000_000
SAMPLING_SECONDS = 0.01

LOADER = """
import sys, ninfer
engine = ninfer.load(sys.argv[1], weights=sys.argv[2], kv_capacity=512, prefill_chunk=64)
print(engine.model.program.statistics().weight_bytes)
"""


def shapes() -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, HIDDEN)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            result[f"{prefix}self_attn.{name}_proj.weight"] = (HIDDEN, HIDDEN)
        for name in ("gate", "up"):
            result[f"{prefix}mlp.{name}_proj.weight"] = (INTERMEDIATE, HIDDEN)
        result[f"{prefix}mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
        for name in ("input", "post_attention"):
            result[f"{prefix}{name}_layernorm.weight"] = (HIDDEN,)
    result["model.norm.weight"] = (HIDDEN,)
    return result


@pytest.fixture(scope="module")
def big_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of about 110 million bf16 parameters, written tensor by tensor."""
    path = tmp_path_factory.mktemp("big")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "hidden_act": "silu",
    }
    (path / "config.json").write_text(json.dumps(config))
    write_tiny_tokenizer(path, VOCAB)
    header: dict[str, object] = {}
    offset = 0
    for name, shape in shapes().items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header).encode()
    generator = np.random.default_rng(5)
    with (path / "model.safetensors").open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for shape in shapes().values():
            values = generator.standard_normal(int(np.prod(shape)), np.float32) * 0.02
            file.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    return path


def anonymous_bytes(process_id: int) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


@pytest.mark.parametrize("weights", ["bf16", "q8", "q4"])
def test_loading_never_needs_more_than_one_tensor_beside_the_packed_weights(big_model: Path, weights: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LOADER, str(big_model), weights], stdout=subprocess.PIPE, text=True
    )
    peak = 0
    samples = 0

    def sample() -> None:
        nonlocal peak, samples
        while process.poll() is None:
            try:
                peak = max(peak, anonymous_bytes(process.pid))
            except OSError:
                return
            samples += 1
            time.sleep(SAMPLING_SECONDS)

    sampler = threading.Thread(target=sample)
    sampler.start()
    output, _ = process.communicate(timeout=300)
    sampler.join()
    assert process.returncode == 0
    packed = int(output)
    largest = 2 * max(int(np.prod(shape)) for shape in shapes().values())
    print(f"{weights}: packed {packed / 1e6:.0f} MB, largest tensor {largest / 1e6:.0f} MB, peak {peak / 1e6:.0f} MB")
    assert samples > 10
    assert peak <= packed + largest + SLACK_BYTES
