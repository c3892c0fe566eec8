"""A PostgreSQL of our own on a loopback port, for one test session."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

USER = "ixsearch"
PATIENCE_S = 60


def binaries() -> Path:
    """The folder of initdb and postgres; skips the test where there is none."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'ixsearch[test]'")
    folders = [Path(found).parent for found in [shutil.which("initdb")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("needs PostgreSQL's server: apt-get install postgresql")


@contextmanager
def running_postgres() -> Iterator[str]:
    """Its URL; the server and its files are gone in the end."""
    folder, account = binaries(), _account()
    home = Path(tempfile.mkdtemp(prefix="ixsearch-postgres-"))
    try:
        if account:
            os.chown(home, account["user"], account["group"])
        data, port = home / "data", _free_port()
        initdb = [folder / "initdb", "-D", data, "-U", USER, "--auth=trust", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=home, **account)
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(
                [folder / "postgres", "-D", data, "-p", str(port), *_settings(home)],
                stdout=log,
                stderr=log,
                cwd=home,
                **account,
            )
        try:
            url = f"postgresql://{USER}@127.0.0.1:{port}/postgres"
            _wait_until_it_answers(server, url, home / "log")
            yield url
        finally:
            server.send_signal(signal.SIGINT)  # at once: clients may still be connected
            server.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _account() -> dict[str, Any]:
    """Whom to run as: PostgreSQL refuses root, and Debian's package brings a user."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL refuses root, and there is no user postgres")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def _settings(home: Path) -> list[str]:
    wanted = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(home),
        "fsync": "off",  # nothing here outlives the machine
    }
    return [word for key, value in wanted.items() for word in ("-c", f"{key}={value}")]


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


def _wait_until_it_answers(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    import psycopg

    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.05)
