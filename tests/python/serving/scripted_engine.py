"""An engine that says what a test wants, when the test wants it."""

from __future__ import annotations

import itertools
from concurrent.futures import Future
from dataclasses import dataclass, field

from ninfer.engine.catalog_view import CatalogView
from ninfer.engine.events import EngineEvent, Finished, HandOver, RequestTimings, TokenEvent
from ninfer.engine.output_session import FinishReason, TokenLogprob
from ninfer.engine.request import EngineRequest
from ninfer.engine.service import EngineHealth
from ninfer.engine.text_stream import TextStream
from ninfer.errors import NinferError
from ninfer.frontend.tokenizer import Tokenizer
from ninfer.serving.event_router import EventRouter


@dataclass
class ScriptedEngine:
    """`answer`: events that every request gets at once. `refusal`: what submission raises instead. `catalog`: None
    leaves the `questions` unanswered."""

    hand_over: HandOver
    router: EventRouter
    answer: list[EngineEvent] = field(default_factory=list)
    refusal: NinferError | None = None
    health: EngineHealth = field(default_factory=lambda: EngineHealth("ready"))
    requests: dict[int, EngineRequest] = field(default_factory=dict)
    cancelled: dict[int, str] = field(default_factory=dict)
    catalog: CatalogView | None = field(default_factory=CatalogView)
    questions: list[Future[CatalogView]] = field(default_factory=list)
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def submit(self, request: EngineRequest) -> int:
        if self.refusal is not None:
            raise self.refusal
        request_id = next(self.ids)
        self.requests[request_id] = request
        if self.answer:
            self.hand_over([(request_id, list(self.answer))])
        return request_id

    def ask_catalog(self) -> Future[CatalogView]:
        question: Future[CatalogView] = Future()
        self.questions.append(question)
        if self.catalog is not None:
            question.set_result(self.catalog)
        return question

    def cancel(self, request_id: int, reason: str) -> None:
        self.cancelled[request_id] = reason


def answer_events(
    tokenizer: Tokenizer, text: str, *, reason: FinishReason = "stop", logprobs: bool = False, prompt_tokens: int = 9
) -> list[EngineEvent]:
    """The tokens of `text`, an end token if the answer stops by itself, and the end."""
    ids = tokenizer.encode(text, add_special=False, parse_special=False)
    pieces = TextStream(tokenizer, ())
    events: list[EngineEvent] = [_token(token_id, pieces.push(token_id), logprobs) for token_id in ids]
    if reason == "stop":
        end = min(tokenizer.eos_ids)
        events.append(TokenEvent(end, "", TokenLogprob(end, -0.5, ()) if logprobs else None))
    timings = RequestTimings(prompt_tokens, 0, 2.0, len(events), 4.0, 0.5, 0, 100)
    return [*events, Finished(reason, timings, prompt_tokens, len(events))]


def _token(token_id: int, text: str, logprobs: bool) -> TokenEvent:
    logprob = TokenLogprob(token_id, -0.25, ((token_id, -0.25), (token_id + 1, float("-inf")))) if logprobs else None
    return TokenEvent(token_id, text, logprob)
