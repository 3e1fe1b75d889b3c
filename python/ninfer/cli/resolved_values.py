"""What a server says about itself when it is ready: every value that was chosen for the user, and by the user."""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.engine.capacity import PAGE_TOKENS
from ninfer.engine.loaded_model import LoadedModel
from ninfer.engine.native_model import weight_storage
from ninfer.serving.server_options import ServerOptions


def resolved_values(options: ServerOptions, model: LoadedModel) -> Iterator[str]:
    """Lines for the console. API keys are counted, never shown."""
    pairs = {**_model_values(model), **_cache_values(model), **_server_values(options)}
    width = max(map(len, pairs))
    for name, value in pairs.items():
        yield f"{name:{width}}  {value}"


def _model_values(model: LoadedModel) -> dict[str, str]:
    capacity = model.capacity
    matrices = [tensor for tensor in model.files.tensors.values() if len(tensor.shape) == 2]
    storages = sorted({weight_storage(tensor, model.options.weights) for tensor in matrices})
    return {
        "model": str(model.files.path),
        "device": "cpu",
        "threads": str(capacity.threads),
        "cpu isa": capacity.cpu_isa,
        "weights": f"{model.options.weights} ({', '.join(storages)})",
        "kv dtype": capacity.kv_dtype,
        "max context": f"{capacity.max_context} tokens",
        "kv capacity": f"{capacity.kv_pages * PAGE_TOKENS} tokens",
        "max concurrency": str(capacity.max_concurrency),
        "prefill chunk": f"{model.prefill_chunk} tokens",
        "default max tokens": str(model.options.default_max_tokens),
        "chat template": _template(model),
    }


def _cache_values(model: LoadedModel) -> dict[str, str]:
    options, capacity = model.options, model.capacity
    if not options.context_cache:
        return {"context cache": "off: every prompt is computed from its beginning"}
    return {
        "context cache": "on",
        "device state slots": f"{capacity.checkpoint_slots} beside {capacity.max_concurrency} of running requests",
        "host cache": f"{capacity.host_bytes >> 20} MiB",
        "private continuations": f"at most {options.max_private_continuations}",
        "shared prefixes": f"at most {options.max_shared_prefixes}",
        "long anchors": f"at most {options.max_long_anchors_per_continuation} per continuation",
        "auto long anchors": f"at the last {options.auto_long_anchors} messages",
        "prefix grid": "on" if options.auto_prefix_grid else "off",
        "endpoint anchors": "on" if options.endpoint_anchors else "off",
    }


def _template(model: LoadedModel) -> str:
    if model.options.chat_template is not None:
        return str(model.options.chat_template)
    return "none: chat requests are refused" if model.frontend.template is None else "the model's"


def _server_values(options: ServerOptions) -> dict[str, str]:
    serving = options.serving
    return {
        "model names": ", ".join(serving.served_model_names),
        "max queued": str(serving.max_queued),
        "api keys": str(len(serving.api_keys)) if serving.api_keys else "none: whoever reaches the server may use it",
        "cors origins": ", ".join(serving.cors_origins) or "none",
        "max body": f"{serving.max_body_mib} MiB",
        "max headers": f"{serving.max_header_kib} KiB",
        "headers timeout": f"{serving.headers_timeout_s:g} s",
        "body timeout": f"{serving.body_timeout_s:g} s",
        "send timeout": f"{serving.send_timeout_s:g} s",
        "request timeout": "none" if serving.request_timeout_s is None else f"{serving.request_timeout_s:g} s",
        "keep alive": f"{serving.keep_alive_s} s",
        "max connections": str(serving.max_connections),
        "special tokens": "parsed in content" if serving.parse_special_in_content else "plain text in content",
        "request log": "none" if options.request_log is None else str(options.request_log),
        "log level": options.log_level,
    }
