"""NInfer beside llama.cpp on the same weights: prefill of 512 tokens and decoding of 64, in turns, same threads.

    python bench/peers/llama_cpp.py [--model smollm2|FILE.gguf] [--threads N] [--llama-bench PATH] [--quick]

The last line is PASS or FAIL by the floors below, or INVALID where the peer itself ran too slowly to be compared with;
the exit code is 0, 1 or 75.
llama.cpp runs with its flash attention on and off in every round, and its better median counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that this also runs as a script

import numpy as np

import ninfer
from bench.support.gguf_weights import GgufWeights, read_gguf_weights
from bench.support.llama_cpp_build import llama_cpp_tool
from bench.support.machine import describe_machine, memory_read_gbps
from ninfer.engine.capacity import physical_cores
from tests.fixtures.smollm2_file import smollm2_gguf

PREFILL_TOKENS = 512
DECODE_TOKENS = 64
PREFILL_FLOOR = 0.25
DECODE_FLOOR = 0.5
# A q8 peer that decodes below this share of the memory rate was disturbed or badly built: no ratio to it counts.
PEER_Q8_BANDWIDTH_SHARE_MIN = 0.65
# The same if its median round falls so far behind its best one: something else was using the machine.
PEER_MEDIAN_OF_BEST_MIN = 0.7
EXIT_CODES = {"PASS": 0, "FAIL": 1, "INVALID": 75}
INFO_TOOL = "llama-completion"
ROUNDS, QUICK_ROUNDS = 5, 2
FIRST_ID, PROMPT_SEED = 3, 20260


@dataclass
class Rates:
    """Tokens per second, one entry per round."""

    prefill: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """Medians in tokens per second and what they are compared with; `peer_*` is the better flash attention setting."""

    weights: GgufWeights
    memory_gbps: float
    prefill: float
    decode: float
    peer_prefill: float
    peer_decode: float
    peer_steadiness: float

    def bandwidth_share(self, decode: float) -> float:
        """Share of the measured memory rate that reading every weight once per token takes."""
        return decode * self.weights.bytes_per_token / 1e9 / self.memory_gbps

    def verdict(self) -> str:
        if self.weights.storage == "Q8_0" and self.bandwidth_share(self.peer_decode) < PEER_Q8_BANDWIDTH_SHARE_MIN:
            return "INVALID"
        if self.peer_steadiness < PEER_MEDIAN_OF_BEST_MIN:
            return "INVALID"
        enough_prefill = self.prefill >= PREFILL_FLOOR * self.peer_prefill
        enough_decode = self.decode >= DECODE_FLOOR * self.peer_decode
        return "PASS" if enough_prefill and enough_decode else "FAIL"


class OurSide:
    """NInfer in this process, storing weights as the file does."""

    def __init__(self, model: Path, threads: int, vocab: int) -> None:
        self._engine = ninfer.load(model, weights="auto", threads=threads)
        self._random = np.random.default_rng(PROMPT_SEED)
        self._vocab = vocab
        self.rates = Rates()
        self._generate(PREFILL_TOKENS, 1)  # warm-up: pages of the file, thread pool

    def measure(self) -> None:
        self.rates.prefill.append(PREFILL_TOKENS / self._generate(PREFILL_TOKENS, 1))
        # One prompt token and n outputs are n passes of one token, as in llama-bench's tg test.
        self.rates.decode.append(DECODE_TOKENS / self._generate(1, DECODE_TOKENS))

    def _generate(self, prompt_tokens: int, output_tokens: int) -> float:
        # A new prompt each time, so that no cache can answer.
        prompt = [int(one) for one in self._random.integers(FIRST_ID, self._vocab, prompt_tokens)]
        start = time.perf_counter()
        result = self._engine.generate(prompt, max_tokens=output_tokens, temperature=0, ignore_eos=True)
        elapsed = time.perf_counter() - start
        assert len(result.token_ids) == output_tokens, (len(result.token_ids), output_tokens)
        return elapsed


class Peer:
    """llama-bench, started anew for every measurement; it warms up by itself."""

    def __init__(self, tool: Path, model: Path, threads: int) -> None:
        self._command = [str(tool), "-m", str(model), "-t", str(threads), "-r", "1", "-o", "json"]
        self.rates = {"off": Rates(), "on": Rates()}

    def measure(self) -> None:
        for flash_attention, rates in self.rates.items():
            tests = ["-p", str(PREFILL_TOKENS), "-n", str(DECODE_TOKENS), "-fa", flash_attention]
            done = subprocess.run([*self._command, *tests], check=True, capture_output=True, text=True)
            for result in json.loads(done.stdout):
                self._add(rates, result)

    def _add(self, rates: Rates, result: dict[str, Any]) -> None:
        (rates.prefill if result["n_prompt"] else rates.decode).extend(result["samples_ts"])

    def best(self, what: str) -> float:
        return max(statistics.median(getattr(rates, what)) for rates in self.rates.values())

    def steadiness(self, what: str) -> float:
        """Median over best round of the setting that `best` takes."""
        best = max((getattr(rates, what) for rates in self.rates.values()), key=statistics.median)
        return statistics.median(best) / max(best)


def main() -> int:
    options = _parse()
    model = smollm2_gguf() if options.model == "smollm2" else Path(options.model)
    tool = options.llama_bench or _built_bench()
    weights = read_gguf_weights(model)
    print(f"machine      {describe_machine()}")
    print(f"peer         {_system_info(tool, model, options.threads)}")
    print(f"model        {model.name}: {weights.describe()}, {options.threads} threads")
    memory_gbps = memory_read_gbps(options.threads)
    ours = OurSide(model, options.threads, weights.vocab)
    peer = Peer(tool, model, options.threads)
    for _ in range(QUICK_ROUNDS if options.quick else ROUNDS):
        ours.measure()
        peer.measure()
    comparison = Comparison(
        weights=weights,
        memory_gbps=max(memory_gbps, memory_read_gbps(options.threads)),
        prefill=statistics.median(ours.rates.prefill),
        decode=statistics.median(ours.rates.decode),
        peer_prefill=peer.best("prefill"),
        peer_decode=peer.best("decode"),
        peer_steadiness=min(peer.steadiness("prefill"), peer.steadiness("decode")),
    )
    _print_table(comparison)
    for name, rates in {"ninfer": ours.rates, **{f"llama.cpp fa {k}": v for k, v in peer.rates.items()}}.items():
        print(f"rounds       {name}: prefill {_list(rates.prefill)}; decode {_list(rates.decode)}")
    print(f"load after   {describe_machine().split('load ')[1]}")
    print(comparison.verdict())
    return EXIT_CODES[comparison.verdict()]


def _built_bench() -> Path:
    llama_cpp_tool(INFO_TOOL)
    return llama_cpp_tool("llama-bench")


def _print_table(found: Comparison) -> None:
    per_token = found.weights.bytes_per_token / 1e6
    print(f"memory read  {found.memory_gbps:.1f} GB/s; every token reads {per_token:.1f} MB of weights")
    print(f"{'':12} {'ninfer':>9} {'llama.cpp':>9} {'ratio':>6} {'floor':>6}   share of memory rate (ours, peer)")
    shares = f"{found.bandwidth_share(found.decode):.0%}, {found.bandwidth_share(found.peer_decode):.0%}"
    for what, ours, peer, floor, note in (
        (f"prefill {PREFILL_TOKENS}", found.prefill, found.peer_prefill, PREFILL_FLOOR, ""),
        (f"decode {DECODE_TOKENS}", found.decode, found.peer_decode, DECODE_FLOOR, shares),
    ):
        print(f"{what:12} {ours:9.1f} {peer:9.1f} {ours / peer:6.2f} {floor:6.2f}   {note}")


def _list(rates: list[float]) -> str:
    return " ".join(f"{rate:.1f}" for rate in rates)


def _system_info(bench: Path, model: Path, threads: int) -> str:
    """llama.cpp's own line about the instructions it was built for; llama-bench prints none, its sibling does."""
    sibling = bench.with_name(INFO_TOOL)
    if not sibling.is_file():
        return f"{bench} ({INFO_TOOL} is not beside it, so system_info is unknown)"
    command = [str(sibling), "-m", str(model), "-t", str(threads), "-p", "a", "-n", "1", "-no-cnv"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if "system_info: " in line)
    return line[line.index("system_info: ") :].rstrip(" |")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="smollm2 (fetched once) or a .gguf file")
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--llama-bench", type=Path, help="a built llama-bench; otherwise one is built (minutes)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds instead of {ROUNDS}")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
