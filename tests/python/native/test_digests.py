"""Our XXH3-128 against the xxhash package, and the chain of docs/formats/prefix_digest.md written down once more."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

import numpy as np
import pytest
import xxhash

from ninfer import native
from tests.fixtures.seed import SEED

Media = tuple[int, int, int]
Span = tuple[int, int, tuple[int, int, int], tuple[int, int, int], Media | None]


@pytest.fixture
def rng() -> random.Random:
    print(f"NINFER_TEST_SEED={SEED}")
    return random.Random(SEED)


def little_endian(data: bytes) -> bytes:
    return xxhash.xxh3_128_intdigest(data).to_bytes(16, "little")


def test_every_length_up_to_a_block_and_beyond(rng: random.Random) -> None:
    data = rng.randbytes(1101)
    for length in range(1101):
        assert native.xxh3_128(data[:length]) == little_endian(data[:length]), length


@pytest.mark.parametrize("length", [1024 * 2, 1024 * 2 + 1, 1024 * 3 - 1, 4096 + 64, 65536 + 13, 1_000_003])
def test_long_inputs(rng: random.Random, length: int) -> None:
    data = rng.randbytes(length)
    assert native.xxh3_128(data) == little_endian(data)


@pytest.mark.parametrize("byte", [0x00, 0x80, 0xFF])
def test_uniform_bytes(byte: int) -> None:
    for length in (0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025):
        data = bytes([byte]) * length
        assert native.xxh3_128(data) == little_endian(data), length


@dataclass(frozen=True)
class Prompt:
    salt: bytes
    mode: bytes
    rope_delta: int
    tokens: list[int]
    spans: list[Span]

    def digests(self, frontiers: list[int]) -> list[bytes]:
        tokens = np.array(self.tokens, np.int32)
        return native.prefix_digests(self.salt, self.mode, self.rope_delta, tokens, self.spans, frontiers)

    def expected(self) -> list[bytes]:
        """d_0 to d_n after the page, one token at a time."""
        header = struct.pack("<I", 1)
        for text in (self.salt, self.mode):
            header += struct.pack("<Q", len(text)) + text
        chain = [little_endian(header + struct.pack("<q", self.rope_delta))]
        block = b""
        for index, token in enumerate(self.tokens):
            if index % 64 == 0:
                block = chain[-1]
            block += self._record(index, token)
            chain.append(little_endian(block))
        return chain

    def _record(self, index: int, token: int) -> bytes:
        if not self.spans:
            return struct.pack("<iiiii", token, 0, index, index, index)
        begin, kind, positions, steps, media = max(span for span in self.spans if span[0] <= index)
        offset = index - begin
        moved = [position + offset * step for position, step in zip(positions, steps, strict=True)]
        record = struct.pack("<iiiii", token, kind, *moved)
        return record if media is None else record + struct.pack("<QQq", media[0], media[1], media[2] + offset)


def random_prompt(rng: random.Random, tokens: int) -> Prompt:
    spans: list[Span] = []
    begin = 0
    while begin < tokens and rng.random() < 0.9:
        positions = (rng.randrange(-5, 300000), rng.randrange(300000), rng.randrange(300000))
        steps = (rng.randrange(-1, 3), rng.randrange(2), rng.randrange(2))
        media = (rng.getrandbits(64), rng.getrandbits(64), rng.randrange(4096)) if rng.random() < 0.4 else None
        spans.append((begin, rng.randrange(4), positions, steps, media))
        begin += rng.randrange(1, 100)
    salt, mode = rng.randbytes(rng.choice([0, 1, 40])), rng.randbytes(rng.choice([0, 7, 300]))
    ids = [rng.randrange(-1, 2**31 - 1) for _ in range(tokens)]
    return Prompt(salt, mode, rng.randrange(-(2**63), 2**63), ids, spans)


@pytest.mark.parametrize("tokens", [0, 1, 2, 63, 64, 65, 1000])
def test_the_chain_is_the_one_of_the_page(rng: random.Random, tokens: int) -> None:
    for _ in range(10):
        prompt = random_prompt(rng, tokens)
        chain = prompt.expected()
        assert prompt.digests(list(range(tokens + 1))) == chain
        chosen = sorted(rng.choices(range(tokens + 1), k=5))
        assert prompt.digests(chosen) == [chain[frontier] for frontier in chosen]


def test_every_component_reaches_the_digest() -> None:
    span: Span = (0, 0, (5, 6, 7), (1, 1, 1), (1, 2, 3))
    prompts = [
        Prompt(b"s", b"m", 0, [4], [span]),
        Prompt(b"", b"sm", 0, [4], [span]),
        Prompt(b"sm", b"", 0, [4], [span]),
        Prompt(b"s", b"m", 1, [4], [span]),
        Prompt(b"s", b"m", 0, [5], [span]),
        Prompt(b"s", b"m", 0, [4], [(0, 1, (5, 6, 7), (1, 1, 1), (1, 2, 3))]),
        *(
            Prompt(b"s", b"m", 0, [4], [(0, 0, axes, (1, 1, 1), (1, 2, 3))])
            for axes in [(6, 6, 7), (5, 7, 7), (5, 6, 8)]
        ),
        *(
            Prompt(b"s", b"m", 0, [4], [(0, 0, (5, 6, 7), (1, 1, 1), m)])
            for m in [None, (2, 2, 3), (1, 3, 3), (1, 2, 4)]
        ),
    ]
    digests = [prompt.digests([1])[0] for prompt in prompts]
    assert len(set(digests)) == len(prompts)


@pytest.mark.parametrize("frontiers", [[-1], [3], [2, 1]])
def test_frontiers_outside_are_refused(frontiers: list[int]) -> None:
    with pytest.raises(ValueError, match="frontier"):
        Prompt(b"", b"", 0, [1, 2], []).digests(frontiers)


@pytest.mark.parametrize("begins", [[1], [0, 0], [0, 2, 1]])
def test_spans_out_of_order_are_refused(begins: list[int]) -> None:
    spans: list[Span] = [(begin, 0, (0, 0, 0), (1, 1, 1), None) for begin in begins]
    with pytest.raises(ValueError, match="span"):
        Prompt(b"", b"", 0, [1, 2, 3], spans).digests([3])


def test_numbers_that_are_no_int32_are_refused() -> None:
    for wrong in (np.array([1.5, 2.0]), np.array([1, 2], np.int64)):
        with pytest.raises(TypeError):
            native.prefix_digests(b"", b"", 0, wrong, [], [2])


def test_a_prepared_prompt_has_the_digests_of_the_chain(rng: random.Random) -> None:
    tokens = np.array([rng.randrange(-(2**31), 2**31) for _ in range(200)], np.int32)
    prompt = native.PreparedPrompt(tokens, salt="s", mode="m")
    assert (prompt.size, prompt.salt, prompt.mode) == (200, "s", "m")
    assert prompt.tokens.tolist() == tokens.tolist()
    assert not prompt.tokens.flags.writeable
    frontiers = np.array([200, 0, 64, 65, 199], np.int64)
    digests = prompt.digests(frontiers)
    for frontier, row in zip(frontiers.tolist(), digests, strict=True):
        assert row.tobytes() == native.prefix_digests(b"s", b"m", 0, tokens, [], [frontier])[0]
    assert prompt.matches(frontiers, digests).all()
    assert not native.PreparedPrompt(tokens, salt="t", mode="m").matches(frontiers, digests).any()
    shorter = native.PreparedPrompt(tokens[:65], salt="s", mode="m")
    assert shorter.matches(frontiers, digests).tolist() == [False, True, True, True, False]
    for frontier in (-1, 201):
        with pytest.raises(ValueError, match="not in the prompt"):
            prompt.digests(np.array([frontier], np.int64))
    with pytest.raises(ValueError, match="as many"):
        prompt.matches(frontiers[:1], digests)
