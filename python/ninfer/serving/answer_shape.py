"""What every answer's shape has in common, and the shape of errors."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class AnswerShape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorObject(AnswerShape):
    """What went wrong. param: the field at fault; code: the case, for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(AnswerShape):
    """Every error, and the last event of a stream that breaks off."""

    error: ErrorObject
