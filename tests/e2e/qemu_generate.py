"""Generates with the installed package on the CPU it finds itself on, and compares with the demo model's known answer.

tests/run.py starts it under qemu-user as CPUs that lack the newer instruction sets: one instruction of those in the
baseline path ends it with SIGILL. It uses neither pytest nor torch, whose wheels ask for more than such a CPU has.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.resources import files

import ninfer

TOKENS = 8


def known_answer() -> tuple[list[dict[str, object]], list[int]]:
    """The messages of the first recorded step of the demo model and the first tokens of its greedy answer in f32."""
    recorded = json.loads(files("ninfer.demo").joinpath("hybrid", "expected.json").read_text(encoding="utf-8"))
    step = recorded[0]["steps"][0]
    return step["messages"], step["token_ids"][:TOKENS]


def main(isa: str) -> int:
    messages, expected = known_answer()
    engine = ninfer.load("hybrid", weights="f32", kv_dtype="f32", threads=1)
    answer = engine.generate(messages=messages, max_tokens=TOKENS, temperature=0.0)
    found = list(answer.token_ids)
    print(f"instruction set {engine.cpu_isa}, tokens {found}")
    assert engine.cpu_isa == isa, f"this CPU should choose {isa}, chose {engine.cpu_isa}"
    assert found == expected, f"expected {expected}"
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--isa", required=True, help="the instruction set that the CPU should get")
    sys.exit(main(parser.parse_args().isa))
