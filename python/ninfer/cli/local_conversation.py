"""A conversation with a model in this process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

from ninfer.cli.conversation import Conversation, Message
from ninfer.cli.local_engine import LocalEngine
from ninfer.cli.turn_cost import TurnCost
from ninfer.engine.events import Finished, TokenEvent
from ninfer.frontend.chat_encoder import EncodedChat
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.reasoning_parser import ReasoningDelta, ReasoningParser, prompt_opens_reasoning
from ninfer.serving.accounting import accounting


@dataclass
class LocalConversation(Conversation):
    """What was computed of an interrupted turn is kept by the engine, as of a client that left a server."""

    engine: LocalEngine

    def check(self) -> None:
        """Raises RequestError for what would refuse every turn: sampling values, no template, a system message."""
        chat = self._encoded([*self.beginning, {"role": "user", "content": "hello"}])
        self.engine.check(self.engine.request(chat, self.sampling))

    def _answer(self, messages: list[Message]) -> Generator[ReasoningDelta]:
        """Raises RequestError if the conversation no longer fits, EngineFailedError if the engine breaks."""
        chat = self._encoded(messages)
        parser = ReasoningParser(opened=prompt_opens_reasoning(chat.text))
        with closing(self.engine.events(self.engine.request(chat, self.sampling))) as events:
            for event in events:
                if isinstance(event, TokenEvent):
                    yield parser.push(event.text)
                elif isinstance(event, Finished):
                    self.last = TurnCost.reported(accounting(event), event.finish_reason)
        yield parser.flush()

    def _encoded(self, messages: list[Message]) -> EncodedChat:
        return self.engine.encode_chat(ChatPrompt(messages, template_kwargs=self.template_kwargs))
