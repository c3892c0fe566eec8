"""Opening the place where studies live."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    NoSuchModuleError,
    SQLAlchemyError,
)

from ixsearch.patterns import IxsearchError
from ixsearch.search.uncut_storage import UncutStorage

SQLITE_MAGIC = b"SQLite format 3\0"
LOCK_WAIT_S = 60


def storage_url(text: str) -> str:
    """An Optuna storage URL; a plain path means an SQLite file there."""
    return text if "://" in text else f"sqlite:///{Path(text).expanduser().absolute()}"


def shown_url(url: str) -> str:
    """The URL without its password, for messages."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return url


def open_storage(text: str) -> optuna.storages.BaseStorage:
    """Opens, or makes, the storage. Raises `IxsearchError` when it cannot be opened."""
    # What it logs is an error that is raised as well: of Ctrl-C, say, in the middle of a query.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    url = storage_url(text)
    options: dict[str, Any] = {"pool_pre_ping": True}  # a forward may outlive a connection
    if url.startswith("sqlite"):
        options |= {"connect_args": {"timeout": LOCK_WAIT_S, "isolation_level": None}}
        if path := _sqlite_path(url):
            _check_sqlite(path)
            _use_write_ahead_log(path)
    try:
        return _opened(url, options)
    except (ArgumentError, NoSuchModuleError, ValueError) as e:
        raise IxsearchError(
            f"storage {shown_url(url)}: not a storage URL ({_first_line(e)});"
            " write sqlite:///study.db or postgresql://user@host/name"
        ) from e
    except ImportError as e:
        raise IxsearchError(
            f"storage {shown_url(url)}: its database driver is not installed ({_cause(e)});"
            " install it (`pip install 'ixsearch[postgres]'` for PostgreSQL), or use"
            " sqlite:///study.db"
        ) from e
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as e:
        raise IxsearchError(
            f"storage {shown_url(url)}: cannot be opened ({_first_line(e)});"
            " check the address and your rights, or choose another --storage"
        ) from e
    except RuntimeError as e:
        raise IxsearchError(
            f"storage {shown_url(url)}: made by another version of Optuna ({_first_line(e)});"
            f" run `optuna storage upgrade --storage {shown_url(url)}`, or choose another --storage"
        ) from e


@contextmanager
def storage_trouble(where: str) -> Iterator[None]:
    """Turns what a storage raises in the middle into an `IxsearchError` of this study."""
    try:
        yield
    except optuna.exceptions.StorageInternalError as e:
        raise IxsearchError(
            f"{where}: the storage failed; finished trials are kept: repeat the command to resume"
        ) from e


def is_missing_file(text: str) -> bool:
    """Is it an SQLite file that is not there yet?"""
    url = storage_url(text)
    path = _sqlite_path(url) if url.startswith("sqlite") else None
    return path is not None and not path.exists()


def _opened(url: str, options: dict[str, Any]) -> UncutStorage:
    try:
        storage = UncutStorage(url, engine_kwargs=options)
    except DBAPIError:  # another process was just making the tables, perhaps
        time.sleep(1)
        storage = UncutStorage(url, engine_kwargs=options)
    if storage.engine.name == "sqlite":
        _write_in_turns(storage.engine)
    return storage


def _write_in_turns(engine: Engine) -> None:
    """Let a transaction have the file for itself from its beginning.

    Optuna reads a trial's state and then writes it. SQLite has no SELECT FOR UPDATE: without this
    two processes can both find a trial waiting, and both claim it.
    """

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _sqlite_path(url: str) -> Path | None:
    """The file of an SQLite URL; none for a database in memory or a `file:` URI."""
    try:
        name = make_url(url).database
    except (ArgumentError, ValueError):
        return None
    return Path(name) if name and not name.startswith((":memory:", "file:")) else None


def _check_sqlite(path: Path) -> None:
    """Says plainly what SQLite would only call `unable to open database file`."""
    if path.is_dir():
        raise IxsearchError(f"storage {path} is a folder: name a file in it, {path / 'study.db'}")
    if not path.parent.is_dir():
        raise IxsearchError(
            f"storage {path}: the folder {path.parent} does not exist; make it, or choose another"
            " --storage"
        )
    if not path.exists():
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise IxsearchError(
                f"storage {path}: no right to write in {path.parent}; choose another --storage"
            )
        return
    if not os.access(path, os.R_OK | os.W_OK):
        raise IxsearchError(
            f"storage {path}: no right to read and write it; choose another --storage"
        )
    with path.open("rb") as file:
        if file.read(len(SQLITE_MAGIC)) not in (b"", SQLITE_MAGIC):
            raise IxsearchError(
                f"storage {path} is not an SQLite database; choose another --storage"
            )
    if (tables := _tables(path)) and "studies" not in tables:
        raise IxsearchError(
            f"storage {path} is a database that Optuna did not make (it has {min(tables)});"
            " choose another --storage"
        )


def _tables(path: Path) -> set[str]:
    """Names of its tables; none where they cannot be read, which Optuna will say."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=LOCK_WAIT_S)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows}
    return set()


def _use_write_ahead_log(path: Path) -> None:
    """As safe as the default journal and many times faster: a trial is some six transactions.

    The file remembers it. Where the file system cannot do it, SQLite stays with its default.
    """
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=LOCK_WAIT_S)) as database:
        database.execute("PRAGMA journal_mode = WAL")


def _first_line(error: BaseException) -> str:
    return (_cause(error).splitlines() or [type(error).__name__])[0]


def _cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)
