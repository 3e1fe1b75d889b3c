"""A loaded model that computes: the in-process engine behind `ninfer.load`.

Several generations may be open at once, each advanced by whoever iterates it, from any thread; one computes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer import native
from ninfer.config.engine_options import EngineOptions
from ninfer.economics.calibration import CalibrationFile
from ninfer.engine.capacity import MAX_AUTO_CHUNK, Capacity, resolve_capacity
from ninfer.engine.generation import Generation, GenerationResult, open_sequence
from ninfer.engine.generation_plan import check_prompt, plan_generation, whole_numbers
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.machine import machine_cost
from ninfer.engine.model_frontend import ModelFrontend, load_frontend
from ninfer.engine.native_model import Progress, load_native_model
from ninfer.engine.prefill_chunk import measured_chunk
from ninfer.engine.program_gate import ProgramGate
from ninfer.engine.sampling_params import SamplingParams, default_sampling
from ninfer.errors import RequestError
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.weights.open_model import open_model


class Engine:
    """See `ninfer.load`. Close it to give its memory back, or use it as a context manager."""

    def __init__(self, model: LoadedModel) -> None:
        self._model: LoadedModel | None = model
        self._gate = ProgramGate(model.program)
        self._defaults = default_sampling(model.files.generation)

    @property
    def model(self) -> LoadedModel:
        """What was loaded; ValueError once the engine is closed."""
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
        """A checked generation that computes as its `steps()` are iterated. Raises RequestError."""
        return Generation(self._gate, self.model.frontend.tokenizer, plan_generation(self.model, prompt, params))

    def chat_prompt_ids(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        continue_final_message: bool = False,
        **template_kwargs: Any,
    ) -> tuple[str, list[int]]:
        """The rendered conversation and its token ids, ending where the model is to go on. Raises RequestError."""
        prompt = ChatPrompt(
            messages,
            tools,
            add_generation_prompt=not continue_final_message,
            continue_final_message=continue_final_message,
            template_kwargs=template_kwargs,
        )
        encoded = self.model.frontend.encode_chat(prompt)
        return encoded.text, encoded.token_ids

    def prompt_ids(self, prompt: str | Sequence[int]) -> list[int]:
        """Token ids of a raw prompt; an empty one becomes the BOS token if the model has one."""
        tokenizer = self.model.frontend.tokenizer
        if isinstance(prompt, str):
            ids = tokenizer.encode(prompt, add_special=True, parse_special=True)
        else:
            ids = whole_numbers(prompt)
        if not ids and tokenizer.bos_id is not None:
            ids = [tokenizer.bos_id]
        return ids

    def sampling_params(self, **sampling: Any) -> SamplingParams:
        """The model's defaults with the given fields in their place; None means absent. Raises RequestError."""
        unknown = sampling.keys() - SamplingParams.__dataclass_fields__.keys()
        if unknown:
            raise RequestError(min(unknown), "there is no such sampling field")
        given = {name: value for name, value in sampling.items() if value is not None}
        if isinstance(given.get("stop"), str):
            given["stop"] = (given["stop"],)
        for name in ("stop", "stop_token_ids"):
            if name in given:
                given[name] = _tuple(name, given[name])
        if not isinstance(given.get("logit_bias", {}), Mapping):
            raise RequestError("logit_bias", "expected an object from token ids to numbers")
        return replace(self._defaults, **given)

    def logits(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Logits after every token of `token_ids`, float32 [n, vocab]. Raises RequestError if they do not fit."""
        model = self.model
        ids = whole_numbers(token_ids)
        check_prompt(model, ids, lambda token: 0 <= token < model.files.config.vocab_size)
        logits = np.empty((len(ids), model.files.config.vocab_size), np.float32)
        with self._gate.use() as program:
            sequence = open_sequence(program, len(ids), count_tokens=False)
            try:
                native.must(program.append(sequence, np.asarray(ids, np.int32)))
                done = 0
                while done < len(ids):
                    done += native.must(program.prefill_logits(sequence, logits[done : done + model.prefill_chunk]))
            finally:
                native.must(program.close_sequence(sequence))
        return logits

    def close(self) -> None:
        """Gives all memory back and ends open generations with a ValueError; closing twice changes nothing."""
        self._gate.close()
        self._model = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tuple(name: str, values: Any) -> tuple[Any, ...]:
    try:
        return tuple(values)
    except TypeError as error:
        raise RequestError(name, f"expected a list, found {values!r}") from error


def load(path: str | Path, *, progress: Progress | None = None, **options: Any) -> Engine:
    """Loads a model and returns an engine that computes with it.

    path: a Hugging Face directory or a `.gguf` file. options: fields of `EngineOptions`, the command line's options
    with underscores: `weights=`, `kv_dtype=`, `threads=`, `cpu_isa=`, `prefill_chunk=` … progress: called with (bytes
    done, bytes in all) while weights are packed.

    The engine keeps nothing between calls: what the options of the prompt cache reserve is for an EngineService on its
    model. Until that touches it, it costs a few bytes per block of the Host tier; `context_cache=False` saves them.

    Raises OptionError, ModelNotFoundError, ModelFileError (file, key, expected, found) or CapacityError before anything
    can be served.
    """
    return Engine(load_model(Path(path), EngineOptions.from_mapping(options), datetime.now, progress))


def load_model(
    path: Path,
    options: EngineOptions,
    clock: Callable[[], datetime],
    progress: Progress | None = None,
    calibrations: CalibrationFile | None = None,
) -> LoadedModel:
    """As `load`, with the clock that templates see injected. calibrations: what was measured on this machine before."""
    files = open_model(path)
    frontend = load_frontend(files, options.chat_template, clock)
    capacity = resolve_capacity(options, files.config)
    source = load_native_model(files, options.weights, capacity.threads, progress)
    chunk = MAX_AUTO_CHUNK if options.prefill_chunk == "auto" else options.prefill_chunk
    program = native.Program(
        source, capacity.kv_dtype, _program_options(capacity, min(chunk, capacity.max_context), frontend)
    )
    if options.prefill_chunk == "auto":
        chunk = measured_chunk(program, capacity.max_context)
    cost = machine_cost(files.config, options.weights, capacity, calibrations)
    return LoadedModel(files, options, capacity, frontend, program, min(chunk, capacity.max_context), cost)


def _program_options(capacity: Capacity, max_unit_rows: int, frontend: ModelFrontend) -> native.ProgramOptions:
    options = native.ProgramOptions()
    options.cpu_isa = capacity.cpu_isa
    options.threads = capacity.threads
    options.kv_pages = capacity.kv_pages
    options.max_context = capacity.max_context
    options.max_concurrency = capacity.max_concurrency
    options.max_unit_rows = max_unit_rows
    options.valid_tokens = frontend.tokenizer.vocab_size
    options.checkpoint_slots = capacity.checkpoint_slots
    options.host_bytes = capacity.host_bytes
    return options
