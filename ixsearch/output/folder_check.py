"""May this folder be written? Refused with what is wrong and how to mend it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ixsearch.patterns import IxsearchError

MARKER = ".ixsearch-output.json"
"""The file that tells our output folders from others; it lists the files we wrote."""


def check_place(place: Path) -> None:
    """Refuse an absolute `place` that cannot become, or be replaced by, an output folder.

    Raises `IxsearchError`.
    """
    if place.is_symlink():
        _refuse(place, f"is a symbolic link to {os.readlink(place)}", "give the folder itself")
    if place.exists():
        _check_existing(place)
    _check_writable(place)


def is_ours(folder: Path) -> bool:
    """Did this tool write the folder?"""
    return bool(listed_files(folder))


def listed_files(folder: Path) -> list[str]:
    """The files that the folder's marker lists, itself among them; none where it has no marker."""
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return list(marker["files"]) if marker["written_by"] == "ixsearch" else []
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _check_existing(place: Path) -> None:
    if not place.is_dir():
        _refuse(place, "is a file, not a folder", "give another name, or move the file away")
    if place == Path.cwd() or place in Path.cwd().parents:
        _refuse(
            place, "holds the current folder", f"give a folder below it, such as {place / 'result'}"
        )
    if os.path.ismount(place):
        _refuse(
            place,
            "is a mount point, which cannot be replaced whole",
            f"give a folder below it, such as {place / 'result'}",
        )
    names = sorted(os.listdir(place))
    if names and not is_ours(place):
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        _refuse(
            place,
            f"is not empty and was not written by ixsearch (it holds {shown})",
            "give a new or empty folder, or move its files away",
        )


def _check_writable(place: Path) -> None:
    """Try to write where the folder's parent is, or where it would be made."""
    parent = next(p for p in place.parents if p.exists() or p.is_symlink())
    if not parent.is_dir():
        _refuse(place, f"cannot be made: {parent} is not a folder", "give another folder")
    probe = parent / ".ixsearch-probe"
    try:
        probe.mkdir(exist_ok=True)
        probe.rmdir()
    except OSError as error:
        _refuse(
            place,
            f"cannot be written: {error.strerror or error} in {parent}",
            "give a folder where you may write",
        )


def _refuse(place: Path, why: str, mend: str) -> None:
    raise IxsearchError(f"output folder {place} {why}: {mend} (--out)")
