"""What every object of the OpenAI protocol carries around its content."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Envelope:
    """The same in every chunk of one answer. kind: the object's type; created: Unix seconds."""

    id: str
    kind: str
    created: int
    model: str

    @classmethod
    def new(cls, prefix: str, kind: str, model: str) -> Envelope:
        return cls(f"{prefix}-{uuid.uuid4().hex}", kind, int(time.time()), model)

    def around(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        head = {"id": self.id, "object": self.kind, "created": self.created, "model": self.model}
        return {**head, "choices": choices, **more}
