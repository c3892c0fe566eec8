"""Where a model's folder is."""

from __future__ import annotations

import re
from pathlib import Path

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import ModelError

WEIGHTS = "*.safetensors"
WANTED_FILES = ("*.json", WEIGHTS, "*.jinja", "tokenizer*")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def locate_model(model: str | None, weights: bool = True) -> Path:
    """The folder of a model: the bundled one, a local folder, or a name on the Hugging Face hub.

    A hub model is downloaded, or taken from the local cache when there is no network; without its
    `weights` where only its configuration and its tokenizer are needed.

    Raises:
        ModelError: there is no such model, or it cannot be fetched.
    """
    here = local_model(model)
    return _from_hub(model, weights) if here is None else here


def local_model(model: str | None) -> Path | None:
    """As `locate_model`, without the hub: None is a name that may be there.

    Raises:
        ModelError: neither a folder nor such a name.
    """
    if model is None:
        return MODEL_FOLDER
    folder = Path(model).expanduser()
    if folder.exists():
        return folder
    if model.startswith((".", "/", "~")) or not _HUB_NAME.fullmatch(model):
        raise ModelError(
            f"no such folder: {model}: give the folder of a checkpoint in Hugging Face format,"
            " or its name on the hub (organisation/name)"
        )
    return None


def is_bundled(folder: Path) -> bool:
    """Is this the model that comes with the package?"""
    return folder.resolve() == MODEL_FOLDER.resolve()


def _from_hub(name: str, weights: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = [each for each in WANTED_FILES if weights or each != WEIGHTS]
    try:
        return Path(snapshot_download(name, allow_patterns=wanted))
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"{name} is no local folder, not in the hub's local cache, and the hub cannot be"
            " reached: check the name and the network, or give a local folder"
        ) from error
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        said = str(error).strip().splitlines()
        raise ModelError(
            f"{name} is no local folder and cannot be fetched from the hub:"
            f" {said[0] if said else type(error).__name__}: check the name, and whether you may"
            " have it (`hf auth login`); or give a local folder"
        ) from error
