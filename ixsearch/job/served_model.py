"""What the commands of a job's report serve."""

from __future__ import annotations

from pathlib import Path

from ixsearch.job.locate import is_bundled, local_model
from ixsearch.job.sources import Sources
from ixsearch.output.served_model import ServedModel, absolute
from ixsearch.patterns import read_model_config


def served_model(sources: Sources, folder: Path, out: Path) -> ServedModel:
    """`folder`: where the model of these sources was found; `out`: the output folder."""
    folder, bundled = absolute(folder), is_bundled(folder)
    is_here = local_model(sources.model) is not None
    # Beside the user's own checkpoint files can be linked; nothing is put into a cache.
    beside = folder.parent if is_here and not bundled else Path.cwd()
    name = folder.name if is_here or sources.model is None else Path(sources.model).name
    return ServedModel(
        name=str(folder) if is_here or sources.model is None else sources.model,
        folder=folder,
        stripped=beside / f"{name}-stripped",
        out=absolute(out),
        config=read_model_config(folder),
        is_bundled=bundled,
    )
