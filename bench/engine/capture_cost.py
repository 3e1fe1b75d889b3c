"""What captures cost a prefill: a conversation of about 2,000 tokens with and without the prompt cache, in turns.

    python bench/engine/capture_cost.py [--turns N]

Both engines compute every token; one of them stops at the captures of a conversation of nine messages. They compute
with one thread, and its own CPU time counts, so that other work on the machine does not. The last line is PASS or FAIL
by the median of the ratios of neighbouring measurements, or INVALID where the limit was missed while others used the
machine; the exit code is 0, 1 or 75.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that this also runs as a script

from bench.support.machine import describe_machine
from bench.support.other_work import MOST_OTHER_WORK, OtherWork
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.engine import load_model
from ninfer.engine.request import EngineRequest
from ninfer.engine.sampling_params import SamplingParams
from ninfer.engine.service import EngineService
from tests.fixtures.token_chat import ChatTokens, Message, render

LIMIT = 1.03
MESSAGES, MESSAGE_TOKENS = 9, 220
EXIT_CODES = {"PASS": 0, "FAIL": 1, "INVALID": 75}


def make_service(cached: bool) -> EngineService:
    options = EngineOptions(threads=1, max_context=4096, prefill_chunk=2048, context_cache=cached, host_cache_mib=256)
    return EngineService(load_model(HYBRID_DIRECTORY, options, datetime.now), max_queued=1)


def new_chat(dice: random.Random) -> ChatTokens:
    roles = ["system", *(["user", "assistant"] * MESSAGES)][:MESSAGES]
    messages: list[Message] = [(role, [dice.randrange(10, 500) for _ in range(MESSAGE_TOKENS)]) for role in roles]
    return render([*messages[:-1], ("user", messages[-1][1])])


def prefill_seconds(service: EngineService, chat: ChatTokens) -> float:
    """CPU seconds from submission to the only token."""
    ended: list[object] = []
    params = SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True)
    loop = service._loop
    start = time.thread_time()
    service.submit(EngineRequest(chat.ids, params, boundaries=chat.boundaries), ended.extend)
    while not ended:
        loop.boundary()
    seconds = time.thread_time() - start
    while not loop.idle:
        loop.boundary()
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    turns = parser.parse_args().turns
    print(describe_machine())
    dice = random.Random(1)
    cached, plain = make_service(True), make_service(False)
    others = OtherWork()
    ratios, seconds = [], []
    for turn in range(turns + 1):
        chat = new_chat(dice)
        both = {service: prefill_seconds(service, chat) for service in dice.sample([cached, plain], 2)}
        if turn > 0:
            ratios.append(both[cached] / both[plain])
            seconds.append(both[plain])
    view = cached._loop.view()
    per_prompt = view.captures_taken / (turns + 1)
    median = statistics.median(ratios)
    print(f"{len(chat.ids)} tokens in {statistics.median(seconds) * 1e3:.0f} ms, {per_prompt:.1f} captures per prompt")
    print(f"with captures / without: median {median:.3f}, limit {LIMIT}, {min(ratios):.3f} to {max(ratios):.3f}")
    share = others.share()
    verdict = "PASS" if median <= LIMIT else "FAIL" if share <= MOST_OTHER_WORK else "INVALID"
    print(f"others used {share:.0%} of the CPU time\n{verdict}")
    return EXIT_CODES[verdict]


if __name__ == "__main__":
    raise SystemExit(main())
