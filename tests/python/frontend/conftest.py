"""Tokenizers that several of these tests look at; each is built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.frontend.tokenizer import Tokenizer
from tests.fixtures.gguf_metadata import gguf_metadata
from tests.fixtures.llama_cpp_package import llama_cpp_models
from tests.fixtures.smollm2_file import smollm2_gguf


@pytest.fixture(scope="session")
def models_directory() -> Path:
    return llama_cpp_models()


@pytest.fixture(scope="session")
def demo_tokenizer() -> Tokenizer:
    return Tokenizer.from_hf_directory(HYBRID_DIRECTORY)


@pytest.fixture(scope="session")
def smollm_tokenizer() -> Tokenizer:
    path = smollm2_gguf()
    return Tokenizer.from_gguf(gguf_metadata(path), path)


@pytest.fixture(scope="session")
def qwen_tokenizer(models_directory: Path) -> Tokenizer:
    path = models_directory / "ggml-vocab-qwen2.gguf"
    return Tokenizer.from_gguf(gguf_metadata(path), path)
