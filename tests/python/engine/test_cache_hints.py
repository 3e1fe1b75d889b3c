"""What a request says about sharing: markers of its own, and no shared prefixes that it did not ask for (D-25)."""

from __future__ import annotations

import pytest

from ninfer.engine.request import CacheHints
from ninfer.frontend.chat_prompt import PromptMarker
from ninfer.resources.checkpoint_kind import CheckpointKind
from tests.fixtures.seed import SEED
from tests.fixtures.text_talk import WEATHER, Message, TextTalk
from tests.python.engine.chatting_models import ChattingModels

SHARED = CheckpointKind.SHARED_STABLE_PREFIX
PLAIN = CacheHints(structural=False)


@pytest.fixture
def talk(request: pytest.FixtureRequest, chatting_models: ChattingModels) -> TextTalk:
    print(f"NINFER_TEST_SEED={SEED}")
    models = chatting_models.cached("hybrid"), chatting_models.cold("hybrid")
    return TextTalk(*models, f"{SEED} {request.node.nodeid}")


def shared_prefixes(talk: TextTalk) -> int:
    statistics = talk.engine.warm.loop.view().statistics
    assert statistics is not None
    return statistics.shared_used


def conversation(talk: TextTalk, system: Message) -> list[Message]:
    return [system, {"role": "user", "content": talk.text(40)}]


def test_structure_is_shared_unless_the_request_says_otherwise(talk: TextTalk) -> None:
    system = {"role": "system", "content": talk.text(80)}
    talk.computed(talk.encoded(conversation(talk, system), [WEATHER]), PLAIN)
    assert shared_prefixes(talk) == 0
    talk.computed(talk.encoded(conversation(talk, {**system, "content": talk.text(80)}), [WEATHER]))
    assert shared_prefixes(talk) == 2, "the tools, and the instructions behind them"


def test_what_is_not_shared_is_an_anchor_of_the_conversation(talk: TextTalk) -> None:
    """So the first user message can be edited even so."""
    system = {"role": "system", "content": talk.text(80)}
    for number in range(2):
        prompt = talk.encoded(conversation(talk, system))
        reuse = talk.computed(prompt, PLAIN).finished.reuse
        assert number == 0 or (
            reuse.path is CheckpointKind.LONG_ANCHOR and reuse.frontier == prompt.boundaries.leading_end
        )


def test_a_marker_is_shared_by_whoever_begins_alike(talk: TextTalk) -> None:
    """Behind a document in the first message of the user, where no structure is."""
    document, answer = talk.text(90), {"role": "assistant", "content": talk.text(30)}
    begun: list[Message] = [{"role": "user", "content": document}, answer]
    marked = talk.encoded([*begun, {"role": "user", "content": talk.text(5)}], markers=(PromptMarker(1),))
    [at] = marked.boundaries.markers
    talk.computed(marked, PLAIN)
    assert shared_prefixes(talk) == 1
    for _ in range(2):
        other = talk.encoded([*begun, {"role": "user", "content": talk.text(5)}])
        reuse = talk.computed(other, CacheHints(structural=False, session_id="another")).finished.reuse
        assert (reuse.path, reuse.frontier) == (SHARED, at)


def test_four_markers_are_four_shared_prefixes_however_close(talk: TextTalk) -> None:
    messages = [
        {"role": role, "content": talk.text(1)} for role in ("system", "user", "assistant", "user", "assistant")
    ]
    markers = tuple(PromptMarker(number) for number in range(4))
    prompt = talk.encoded([*messages, {"role": "user", "content": talk.text(1)}], markers=markers)
    assert len(prompt.boundaries.markers) == 4
    talk.computed(prompt)
    assert shared_prefixes(talk) == 4
