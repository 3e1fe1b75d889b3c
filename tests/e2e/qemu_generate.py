"""Generates with the installed package on the CPU it finds itself on, and compares with the demo model's known answer.

tests/run.py starts it under qemu-user as CPUs that lack the newer instruction sets: one instruction of those in the
baseline path ends it with SIGILL. It uses neither pytest nor torch, whose wheels ask for more than such a CPU has.
"""

from __future__ import annotations

import argparse
import json
import sys

import ninfer
from ninfer.demo import HYBRID_DIRECTORY

TOKENS = 8


def known_answer() -> tuple[list[dict[str, str]], list[int]]:
    """The messages of the demo model's first recorded step, and the first tokens of its greedy answer in f32."""
    recorded = json.loads((HYBRID_DIRECTORY / "expected.json").read_text(encoding="utf-8"))
    step = recorded[0]["steps"][0]
    return step["messages"], step["token_ids"][:TOKENS]


def main(isa: str) -> int:
    messages, expected = known_answer()
    with ninfer.load(HYBRID_DIRECTORY, weights="f32", kv_dtype="f32", threads=1, prefill_chunk=64) as engine:
        chosen = engine.model.capacity.cpu_isa
        _, prompt = engine.chat_prompt_ids(messages)
        found = engine.generate(prompt, max_tokens=TOKENS, temperature=0.0).token_ids
    print(f"instruction set {chosen}, tokens {found}")
    assert chosen == isa, f"this CPU should choose {isa}"
    assert found == expected, f"expected {expected}"
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--isa", required=True, help="the instruction set that the CPU should get")
    sys.exit(main(parser.parse_args().isa))
