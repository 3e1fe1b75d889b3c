"""`ninfer-serve`: one model over HTTP."""

from __future__ import annotations

import os
from pathlib import Path

from ninfer.cli.cache_flags import CacheFlags
from ninfer.cli.engine_flags import EngineFlags
from ninfer.cli.flag_groups import environment_variable, with_flags
from ninfer.cli.model_choice import DemoOption, ModelArgument, check_choice, model_path
from ninfer.cli.server_flags import ServerFlags, server_options
from ninfer.cli.server_process import ServerProcess
from ninfer.cli.stop_signals import end_process
from ninfer.cli.version_flag import VersionFlag
from ninfer.serving.console_log import console_log


@with_flags(server_flags=ServerFlags, cache_flags=CacheFlags, engine_flags=EngineFlags)
def serve(
    model: ModelArgument = None,
    demo: DemoOption = None,
    _version: VersionFlag = False,
    *,
    server_flags: ServerFlags,
    cache_flags: CacheFlags,
    engine_flags: EngineFlags,
) -> None:
    """Serve one model to many clients, in the protocol of OpenAI."""
    if model is None and demo is None:
        model, demo = (os.environ.get(environment_variable(name)) or None for name in ("model", "demo"))
    check_choice(model, demo)
    options = server_options(engine_flags, cache_flags, server_flags, _default_name(model, demo))
    with console_log(options.log_level):
        ServerProcess(options, lambda: model_path(model, demo)).run()
    end_process(0)


def _default_name(model: str | None, demo: str | None) -> str:
    """`org/name` and names of the store as they are, paths by their last part."""
    if model is None:
        return demo or "hybrid"
    path = Path(model).expanduser()
    if not path.exists():
        return model
    path = path.resolve()
    return path.stem if path.suffix == ".gguf" else path.name
