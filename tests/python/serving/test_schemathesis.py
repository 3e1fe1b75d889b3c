"""Thousands of requests made from the OpenAPI page of a live server, valid and not, and all of schemathesis' checks.

Left out is `positive_data_acceptance`, which wants every body that fits the page to be accepted: whether token ids
exist, a prompt fits, a conversation suits the template or an empty prompt has a token to begin with depends on the
model, and no page can say it.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import schemathesis

from tests.fixtures.demo_server import demo_server
from tests.fixtures.seed import SEED

LEAST_REQUESTS = 2000
EXAMPLES_PER_OPERATION = 130
# Answers are short: random bodies ask for as many tokens as the context holds.
OPTIONS = {"threads": 2, "max_context": 128, "kv_capacity": 1024, "max_concurrency": 8, "default_max_tokens": 4}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/completions", {"prompt": "hi"}),
        ("/completion", {"prompt": "hi"}),
    ],
)
def test_streams_are_what_the_page_says(path: str, body: dict[str, Any]) -> None:
    """Of the random requests hardly one has a stream as its answer."""
    with demo_server(OPTIONS) as port:
        page = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
        case = page[path]["POST"].Case(body={**body, "stream": True}, media_type="application/json")
        response = case.call()
        assert response.headers["content-type"][0].startswith("text/event-stream")
        assert response.text.count("data: ") > 2
        case.validate_response(response)


def test_every_check_of_schemathesis_passes(tmp_path: Path) -> None:
    print(f"NINFER_TEST_SEED={SEED}")
    program = str(Path(sysconfig.get_path("scripts")) / "schemathesis")
    with demo_server(OPTIONS) as port:
        command = [program, "run", f"http://127.0.0.1:{port}/openapi.json", "--checks", "all", "--mode", "all"]
        # One worker: Python 3.11 counts the depth of its parser for all threads together, and hypothesis parses.
        command += ["--exclude-checks", "positive_data_acceptance", "--workers", "1", "--continue-on-failure"]
        command += ["--max-examples", str(EXAMPLES_PER_OPERATION), "--seed", str(SEED), "--no-shrink"]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert found.returncode == 0, found.stdout[-10_000:] + found.stderr[-2_000:]
    generated = re.search(r"(\d+) generated, (\d+) passed", found.stdout)
    assert generated is not None and int(generated[1]) >= LEAST_REQUESTS, found.stdout[-2_000:]
    assert re.search(r"Tested: 11\b", found.stdout), "an operation was left out"
