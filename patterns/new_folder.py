"""A folder that is complete or absent: filled beside its place, then renamed.

Beside a folder `out` stands, while it is filled, `.out.ixsearch-part`: a lock file and the folder
to be. What a killed run leaves of it, the next run removes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ixsearch.patterns.errors import IxsearchError
from ixsearch.patterns.sync import sync_folder, sync_tree


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives an empty folder to fill; when the block ends well, that becomes `path`.

    When the block raises, nothing is left. Raises `IxsearchError` where `path` exists and is not
    an empty folder, where another run is writing it, and for an `OSError` of the block.
    """
    place = Path(os.path.realpath(path))
    with _explained(place):
        _check_free(place)
        _make_parent(place)
        with _held(place.with_name(f".{place.name}.ixsearch-part")) as part:
            new = part / "new"
            if new.exists():
                shutil.rmtree(new)
            new.mkdir()
            yield new
            sync_tree(new)
            os.rename(new, place)
            sync_folder(place.parent)


def _check_free(place: Path) -> None:
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    what = "a folder with files in it" if place.is_dir() else "a file"
    raise IxsearchError(f"{place} is there already, {what}: give another place, or remove it")


def _make_parent(place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IxsearchError(
            f"cannot make the folder {place.parent}: {error.strerror or error}: give another place"
        ) from error


@contextmanager
def _held(part: Path) -> Iterator[Path]:
    """`part` for this process alone; the system lets go of it when the process ends."""
    part.mkdir(exist_ok=True)
    with open(part / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another run is writing this folder, in {part}: wait for it, or stop it"
            raise IxsearchError(message) from None
        except OSError:  # some network file systems have no locks
            pass
        try:
            yield part
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IxsearchError(
            f"cannot write {place}: {error.strerror or error} ({error.filename or place})."
            " Nothing was left there; mend this, or give another place, and repeat the command"
        ) from error
