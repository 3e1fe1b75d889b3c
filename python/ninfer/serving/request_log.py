"""`--request-log`: one line of JSON per request, with digests where a client's own words would stand."""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from ninfer.engine.events import Cancelled, Failed, Finished
from ninfer.engine.request import CacheHints
from ninfer.engine.sampling_params import SamplingParams
from ninfer.serving.accounting import accounting
from ninfer.serving.background_writer import BackgroundWriter
from ninfer.serving.generation_request import DIGEST_CHARACTERS, GenerationRequest, PromptDigest
from ninfer.serving.request_record import RequestRecord

_LOG = logging.getLogger(__name__)
_CLOSE_S = 1.0
# Of these a client's words or ids are the value; the log says how many there are.
_COUNTED = frozenset({"stop", "stop_token_ids", "logit_bias"})
_UNTOLD = frozenset({"token_mask"})


class RequestLog:
    """Appends to one file. Each line is one write, so that lines stay whole whoever else appends.

    Lines are made and written on a thread of its own. The first failure is reported, then the log stays silent until a
    line succeeds; requests never notice.
    """

    def __init__(self, file: Path) -> None:
        """OSError if the file cannot be opened for appending, also for a pipe that nobody reads."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        # Otherwise opening would wait for a reader.
        self._file = os.open(file, flags | os.O_NONBLOCK, 0o600)
        os.set_blocking(self._file, True)
        self._name = str(file)
        self._writer = BackgroundWriter("ninfer-request-log")
        self._failing = False
        self._torn = False

    def __call__(self, record: RequestRecord) -> None:
        """Called on the event loop with a request that is over."""
        if not self._writer.put(lambda: self._write(record)):
            self._report("the disk is too slow")

    def close(self) -> None:
        if self._writer.close(_CLOSE_S):
            os.close(self._file)

    def _write(self, record: RequestRecord) -> None:
        try:
            line = orjson.dumps(request_line(record)) + b"\n"
            if self._torn:
                line = b"\n" + line
            written = os.write(self._file, line)
            self._torn = 0 < written < len(line) or (self._torn and written == 0)
            if written < len(line):
                raise OSError("the disk took only a part of a line")
            self._failing = False
        except Exception as error:  # whatever it is, requests are worth more than their log
            self._report(str(error))

    def _report(self, reason: str) -> None:
        if not self._failing:
            self._failing = True
            _LOG.error("%s: requests are missing from the log: %s", self._name, reason)


def request_line(record: RequestRecord) -> dict[str, Any]:
    """The fields of one line; docs/reference/cli.md lists them."""
    line: dict[str, Any] = {
        "time": _iso(record.began),
        "id": record.id,
        "method": record.method,
        "endpoint": record.endpoint,
        "status": record.final_status,
        "seconds": round(record.seconds, 6),
    }
    if record.generation is not None:
        line |= _asked(record.generation)
    return line | _ended(record)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _asked(request: GenerationRequest) -> dict[str, Any]:
    return {
        "model": request.model_name,
        "stream": request.stream,
        "prompt": _prompt(request.digest),
        "cache": _cache(request.cache),
        "params": _params(request.params),
    }


def _cache(hints: CacheHints) -> dict[str, Any]:
    return {
        "use": hints.use,
        "salt_sha256": text_digest(hints.salt),
        "session_sha256": text_digest(hints.session_id),
        "sharing": hints.sharing,
    }


def _params(params: SamplingParams) -> dict[str, Any]:
    values = {one.name: getattr(params, one.name) for one in fields(params) if one.name not in _UNTOLD}
    return {name: len(value) if name in _COUNTED else value for name, value in values.items()}


def _ended(record: RequestRecord) -> dict[str, Any]:
    outcome = record.outcome
    if isinstance(outcome, Finished):
        return {"end": "finished", "finish_reason": outcome.finish_reason, **accounting(outcome)}
    if record.client_left:
        return {"end": "client_left"}
    if isinstance(outcome, Cancelled):
        return {"end": "cancelled", "reason": outcome.reason}
    if isinstance(outcome, Failed):
        return {"end": "failed", "reason": outcome.message}
    return {"end": "answered" if record.final_status < 400 else "refused"}


def _prompt(digest: PromptDigest | None) -> dict[str, Any]:
    assert digest is not None, "the engine has the prompt, so its digest is known"
    return {"tokens": digest.tokens, "sha256": digest.sha256}


def text_digest(text: str | None) -> str | None:
    """The first 16 hex digits of the SHA-256 of the UTF-8 bytes."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]
