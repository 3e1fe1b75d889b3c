"""Models named `org/name`: from the user's Hugging Face cache, or fetched into it."""

from __future__ import annotations

from pathlib import Path

from ninfer.config.json_file import read_json_object
from ninfer.errors import FetchError, ModelFileError, ModelNotFoundError
from ninfer.weights.hf_directory import INDEX_FILE, SINGLE_FILE

# Everything that loading reads and nothing else: no pickles, no code, no second copy in another format.
WANTED = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "additional_chat_templates/tool_use.jinja",
    "model.safetensors.index.json",
    "*.safetensors",
)
# Names without a star match one file; the star would match weights of other formats, also in folders.
UNWANTED = ("*/*.safetensors", "consolidated*")


def hugging_face_directory(repository: str) -> Path:
    """Directory of the repository's snapshot: the cached one if it is complete, else a fresh download.

    `huggingface_hub` decides cache, endpoint (HF_ENDPOINT), token and offline mode. Raises ModelNotFoundError if there
    is no such repository or no access to it, FetchError if the download fails.
    """
    cached = _cached(repository)
    if cached is not None and is_complete(cached):
        return cached
    directory = _download(repository)
    if not is_complete(directory):
        # Without a network huggingface_hub hands out what the cache has; and some repositories have no safetensors.
        raise FetchError(f"{repository}: neither cache nor hub holds config.json with all its safetensors files")
    return directory


def is_complete(directory: Path) -> bool:
    """Whether configuration and every weight file that the directory should hold are there."""
    if not (directory / "config.json").exists():
        return False
    if (directory / SINGLE_FILE).exists():
        return True
    try:
        weight_map = read_json_object(directory / INDEX_FILE).get("weight_map")
    except ModelFileError:
        return False
    return isinstance(weight_map, dict) and all((directory / str(shard)).exists() for shard in weight_map.values())


def _cached(repository: str) -> Path | None:
    """The cached snapshot, found without network. Files that loading does not need may be missing from it."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        tokenizer = try_to_load_from_cache(repository, "tokenizer.json")
    except HFValidationError as error:
        raise ModelNotFoundError(f"{repository!r} is not a Hugging Face repository name: {error}") from error
    return Path(tokenizer).parent if isinstance(tokenizer, str) else None


def _download(repository: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        return Path(snapshot_download(repository, allow_patterns=list(WANTED), ignore_patterns=list(UNWANTED)))
    except GatedRepoError as error:
        message = f"{repository} needs its author's permission: accept its terms and run `hf auth login`"
        raise ModelNotFoundError(message) from error
    except RepositoryNotFoundError as error:
        raise ModelNotFoundError(f"there is no repository {repository}, or it is private to others") from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        message = f"{repository} is not complete in the Hugging Face cache and the hub cannot be reached: {error}"
        raise FetchError(message) from error
    except Exception as error:
        # The hub client has changed its HTTP library before, so the errors of its transport cannot be named here.
        raise FetchError(f"{repository} could not be downloaded: {error}") from error
