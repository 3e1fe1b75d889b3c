"""A server that speaks the protocol of OpenAI, as a client sees it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import httpx2

from ninfer.errors import OptionError, RemoteError

# Only for the connection: a long prompt on a slow machine may take minutes to its first token, and Ctrl-C ends it.
_TIMEOUT = httpx2.Timeout(None, connect=10.0)
_LONGEST_MESSAGE = 500


class RemoteServer:
    """Close it, or use it as a context manager. Every method raises RemoteError if the server cannot be reached or
    refuses."""

    def __init__(self, url: str, api_key: str | None, model: str | None = None) -> None:
        """url: with or without `/v1` at its end. model: None for the first one of the server."""
        self.url = _base(url)
        headers = {} if api_key is None else {"Authorization": f"Bearer {_sendable(api_key)}"}
        self._client = httpx2.Client(headers=headers, timeout=_TIMEOUT)
        self._model = model

    def model(self) -> str:
        """The model that answers."""
        if self._model is None:
            with self._failures():
                response = self._client.get(f"{self.url}/models")
                self._check(response)
                self._model = self._first_model(response)
        return self._model

    def stream_chat(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of one answer, as they come. Dropping the iterator closes the connection."""
        whole = {**body, "model": self.model(), "stream": True, "stream_options": {"include_usage": True}}
        with self._failures(), self._client.stream("POST", f"{self.url}/chat/completions", json=whole) as response:
            if response.is_error:
                response.read()
            self._check(response)
            for data in event_data(response.iter_bytes()):
                yield self._chunk(data)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> RemoteServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _first_model(self, response: httpx2.Response) -> str:
        try:
            return str(response.json()["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            raise RemoteError(f"{self.url}/models does not list models; give the name of one") from None

    def _chunk(self, data: str) -> dict[str, Any]:
        try:
            chunk = json.loads(data)
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict):
            raise RemoteError(f"{self.url} sent what is no event of this protocol")
        if chunk.get("error"):
            raise RemoteError(f"{self.url}: {_message(chunk)}")
        return chunk

    def _check(self, response: httpx2.Response) -> None:
        if response.is_success:
            return
        try:
            said = _message(response.json())
        except ValueError:
            said = response.reason_phrase
        raise RemoteError(f"{self.url} answered {response.status_code}: {said}")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise RemoteError(f"{self.url}: {str(error) or type(error).__name__}") from error


def event_data(pieces: Iterable[bytes]) -> Iterator[str]:
    """The data of each server-sent event up to `[DONE]`. Lines end with LF or CR LF only: other characters that end a
    line in Unicode are part of the text."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name != b"data":
                continue
            data = value.removeprefix(b" ").decode(errors="replace")
            if data == "[DONE]":
                return
            yield data


def _base(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise OptionError("url", url, "an address such as http://127.0.0.1:8080 works")
    url = url.rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1"


def _sendable(api_key: str) -> str:
    if not api_key.isascii() or not api_key.isprintable():
        raise OptionError("api_key", "(not shown)", "printable ASCII characters work")
    return api_key


def _message(body: Any) -> str:
    """What an error body says, in the shapes that servers have for it."""
    error = body.get("error", body) if isinstance(body, dict) else body
    said = (error.get("message") or error.get("detail") or error) if isinstance(error, dict) else error
    return str(said)[:_LONGEST_MESSAGE]
