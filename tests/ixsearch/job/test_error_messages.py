"""How an error is said, whichever it is: plainly, unless it is to be debugged."""

from __future__ import annotations

import json
import os

import pytest

from ixsearch.bundled import MODEL_FOLDER

from .small import LOG, all_of, refused, run, said, started

pytestmark = pytest.mark.usefixtures("no_search")


def test_json_does_not_change_how_an_error_is_said(tmp_path):
    args = ("optimize", tmp_path / "absent", "--out", tmp_path / "out")
    code, out, err = run(*args, "--json")
    assert code == 1 and err == refused(*args)
    assert err == f"error: {json.loads(out)['error']}\n"
    all_of(err, "no such folder")


def test_a_traceback_only_with_debug(tmp_path):
    args = ("optimize", tmp_path / "absent", "--out", tmp_path / "out")
    code, out, err = run("--debug", *args)
    assert (code, out) == (1, "") and "Traceback" in err and "no such folder" in err


def test_as_a_process(tmp_path):
    with started("optimize", "--out", MODEL_FOLDER, cwd=tmp_path) as process:
        out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert said(tmp_path).startswith(f"error: output folder {MODEL_FOLDER} is not empty")
    assert os.listdir(tmp_path) == [LOG]
