"""A loaded model that computes: the in-process engine behind `ninfer.load`.

One thread at a time. Several generations may be open at once, each advanced by whoever iterates it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer import native
from ninfer.config.engine_options import EngineOptions
from ninfer.engine.capacity import MAX_AUTO_CHUNK, Capacity, resolve_capacity
from ninfer.engine.generation import Generation, GenerationPlan, GenerationResult
from ninfer.engine.model_frontend import ModelFrontend, load_frontend
from ninfer.engine.native_model import Progress, load_native_model
from ninfer.engine.prefill_chunk import measured_chunk
from ninfer.engine.sampling_params import SamplingParams, default_sampling
from ninfer.errors import CapacityError, RequestError
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.weights.model_files import ModelFiles
from ninfer.weights.open_model import open_model


@dataclass(frozen=True)
class LoadedModel:
    """What loading yields; the engine only adds requests to it."""

    files: ModelFiles
    options: EngineOptions
    capacity: Capacity
    frontend: ModelFrontend
    program: native.Program
    prefill_chunk: int


class Engine:
    """See `ninfer.load`. Close it to give its memory back, or use it as a context manager."""

    def __init__(self, model: LoadedModel) -> None:
        self._model: LoadedModel | None = model
        self._defaults = default_sampling(model.files.generation)

    @property
    def model(self) -> LoadedModel:
        if self._model is None:
            raise ValueError("the engine is closed")
        return self._model

    @property
    def default_sampling(self) -> SamplingParams:
        """The sampling that the model's files recommend."""
        return self._defaults

    def generate(self, prompt: str | Sequence[int], **sampling: Any) -> GenerationResult:
        """Completes text (tokenised with the model's special tokens) or token ids. `sampling`: SamplingParams.

        Raises RequestError naming the field that cannot be served.
        """
        generation = self.start(self.prompt_ids(prompt), self.sampling_params(**sampling))
        for _ in generation.steps():
            pass
        return generation.result()

    def start(self, prompt: Sequence[int], params: SamplingParams) -> Generation:
        """A checked generation that computes as its `steps()` are iterated."""
        model = self.model
        return Generation(model.program, model.frontend.tokenizer, self._plan(list(prompt), params))

    def chat_prompt_ids(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **template_kwargs: Any,
    ) -> tuple[str, list[int]]:
        """The rendered conversation with generation prompt, and its token ids. Raises RequestError."""
        prompt = ChatPrompt(messages, tools, template_kwargs=template_kwargs)
        encoded = self.model.frontend.encode_chat(prompt)
        return encoded.text, encoded.token_ids

    def prompt_ids(self, prompt: str | Sequence[int]) -> list[int]:
        """Token ids of a raw prompt; an empty one becomes the BOS token if the model has one."""
        tokenizer = self.model.frontend.tokenizer
        ids = (
            tokenizer.encode(prompt, add_special=True, parse_special=True) if isinstance(prompt, str) else list(prompt)
        )
        if not ids and tokenizer.bos_id is not None:
            ids = [tokenizer.bos_id]
        return ids

    def sampling_params(self, **sampling: Any) -> SamplingParams:
        """The model's defaults with the given fields in their place. Raises RequestError for an unknown one."""
        if isinstance(sampling.get("stop"), str):
            sampling["stop"] = (sampling["stop"],)
        for name in ("stop", "stop_token_ids"):
            if name in sampling:
                sampling[name] = tuple(sampling[name])
        unknown = sampling.keys() - SamplingParams.__dataclass_fields__.keys()
        if unknown:
            raise RequestError(min(unknown), "there is no such sampling field")
        return replace(self._defaults, **sampling)

    def logits(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Logits after every token of `token_ids`, float32 [n, vocab]. Raises RequestError if they do not fit."""
        model = self.model
        ids = self._checked_ids(token_ids)
        logits = np.empty((len(ids), model.program.vocab_size), np.float32)
        sequence = self._open(len(ids))
        try:
            native.must(model.program.append(sequence, np.asarray(ids, np.int32)))
            done = 0
            while done < len(ids):
                done += native.must(model.program.prefill_logits(sequence, logits[done : done + model.prefill_chunk]))
        finally:
            native.must(model.program.close_sequence(sequence))
        return logits

    def close(self) -> None:
        """Gives all memory back; closing twice changes nothing."""
        self._model = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, tokens: int) -> int:
        result = self.model.program.open_sequence(tokens)
        if isinstance(result, native.Refusal):
            raise CapacityError(f"no room for a sequence of {tokens} tokens: {result}")
        return result

    def _checked_ids(self, token_ids: Sequence[int]) -> list[int]:
        model = self.model
        ids = [int(token) for token in token_ids]
        if not ids:
            raise RequestError("prompt", "an empty prompt, and the model has no BOS token to stand for it")
        for token in ids:
            if not 0 <= token < model.program.vocab_size:
                raise RequestError("prompt", f"token id {token} is not below {model.program.vocab_size}")
        if len(ids) > model.capacity.max_context:
            raise RequestError("prompt", f"{len(ids)} tokens, the context holds {model.capacity.max_context}")
        return ids

    def _plan(self, prompt: list[int], params: SamplingParams) -> GenerationPlan:
        model = self.model
        prompt = self._checked_ids(prompt)
        room = model.capacity.max_context - len(prompt)
        if room < 1:
            raise RequestError("prompt", f"{len(prompt)} tokens fill the context of {model.capacity.max_context}")
        wanted = model.options.default_max_tokens if params.max_tokens is None else params.max_tokens
        if wanted < 1:
            raise RequestError("max_tokens", f"expected at least 1, found {wanted}")
        tokenizer = model.frontend.tokenizer
        end_ids = set(params.stop_token_ids)
        if not params.ignore_eos:
            end_ids |= tokenizer.eos_ids | set(model.files.generation.eos_ids)
        return GenerationPlan(prompt, params.seeded(), min(wanted, room), frozenset(end_ids), model.prefill_chunk)


def load(path: str | Path, *, progress: Progress | None = None, **options: Any) -> Engine:
    """Loads a model and returns an engine that computes with it.

    path: a Hugging Face directory or a `.gguf` file. options: fields of `EngineOptions`, the serving contract's options
    with underscores: `weights=`, `kv_dtype=`, `threads=`, `cpu_isa=`, `prefill_chunk=` … progress: called with (bytes
    done, bytes in all) while weights are packed.

    Raises OptionError, ModelNotFoundError, ModelFileError (file, key, expected, found) or CapacityError before anything
    can be served.
    """
    return Engine(load_model(Path(path), EngineOptions.from_mapping(options), datetime.now, progress))


def load_model(
    path: Path, options: EngineOptions, clock: Callable[[], datetime], progress: Progress | None = None
) -> LoadedModel:
    """As `load`, with the clock that templates see injected."""
    files = open_model(path)
    frontend = load_frontend(files, options.chat_template, clock)
    capacity = resolve_capacity(options, files.config)
    source = load_native_model(files, options.weights, capacity.threads, progress)
    chunk = MAX_AUTO_CHUNK if options.prefill_chunk == "auto" else options.prefill_chunk
    program_options = native.ProgramOptions()
    program_options.cpu_isa = capacity.cpu_isa
    program_options.threads = capacity.threads
    program_options.kv_pages = capacity.kv_pages
    program_options.max_context = capacity.max_context
    program_options.max_concurrency = capacity.max_concurrency
    program_options.max_unit_rows = min(chunk, capacity.max_context)
    program_options.valid_tokens = frontend.tokenizer.vocab_size
    program = native.Program(source, capacity.kv_dtype, program_options)
    if options.prefill_chunk == "auto":
        chunk = measured_chunk(program, capacity.max_context)
    return LoadedModel(files, options, capacity, frontend, program, min(chunk, capacity.max_context))
