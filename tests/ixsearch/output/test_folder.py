import os
import subprocess
import sys
from pathlib import Path

import pytest

from ixsearch.output import folder as module
from ixsearch.output.folder import check_output_folder, output_folder
from ixsearch.output.folder_check import MARKER
from ixsearch.patterns import IxsearchError


def write(place: Path, text: str) -> None:
    with output_folder(place) as new:
        (new / "pattern.yaml").write_text(text)
        (new / "overrides").mkdir()
        (new / "overrides" / "vllm.yaml").write_text(text)


def contents(place: Path) -> dict[str, str]:
    files = (p for p in place.rglob("*") if p.is_file() and p.name != MARKER)
    return {p.relative_to(place).as_posix(): p.read_text() for p in files}


def whole(text: str) -> dict[str, str]:
    return {"pattern.yaml": text, "overrides/vllm.yaml": text}


def test_writes_then_replaces_and_leaves_nothing_beside(tmp_path):
    place = tmp_path / "deep" / "out"
    write(place, "one")
    assert contents(place) == whole("one")
    write(place, "two")
    assert contents(place) == whole("two")
    assert os.listdir(place.parent) == ["out"]


def test_files_of_the_older_result_do_not_linger(tmp_path):
    place = tmp_path / "out"
    with output_folder(place) as new:
        (new / "front.png").write_text("old picture")
    write(place, "two")
    assert contents(place) == whole("two")


def test_an_empty_folder_is_taken(tmp_path):
    place = tmp_path / "out"
    place.mkdir()
    write(place, "one")
    assert contents(place) == whole("one")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_a_failing_block_changes_nothing(tmp_path, error):
    place = tmp_path / "out"
    write(place, "one")
    with pytest.raises((error, IxsearchError)), output_folder(place) as new:
        (new / "pattern.yaml").write_text("half")
        raise error
    assert contents(place) == whole("one")
    assert os.listdir(tmp_path) == ["out"]


def test_a_failing_first_write_leaves_nothing(tmp_path):
    with pytest.raises(ValueError), output_folder(tmp_path / "out"):
        raise ValueError
    assert os.listdir(tmp_path) == []


def test_carries_over_files_that_are_not_ours(tmp_path):
    place = tmp_path / "out"
    write(place, "one")
    (place / "notes.txt").write_text("mine")
    (place / "overrides" / "extra.yaml").write_text("mine")
    (place / "link").symlink_to(tmp_path)
    write(place, "two")
    assert (place / "link").is_symlink()
    (place / "link").unlink()
    assert contents(place) == whole("two") | {"notes.txt": "mine", "overrides/extra.yaml": "mine"}


CRASHING = """
import os, sys
from pathlib import Path
from ixsearch.output.folder import output_folder
left = int(sys.argv[2])
def dying(call):
    def wrapped(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return call(*args, **kwargs)
    return wrapped
for name in ("rename", "mkdir", "fsync", "unlink", "rmdir", "open"):
    setattr(os, name, dying(getattr(os, name)))
with output_folder(Path(sys.argv[1])) as new:
    (new / "pattern.yaml").write_text("two")
    (new / "overrides").mkdir()
    (new / "overrides" / "vllm.yaml").write_text("two")
os._exit(0)
"""


def die_after(place: Path, calls: int) -> int:
    """Write "two" in a process that ends without a word at the given system call."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        sys.argv = ["", str(place), str(calls)]
        exec(compile(CRASHING, "crashing", "exec"), {})
    finally:
        os._exit(1)


@pytest.mark.parametrize("replaces", [True, False])
def test_a_crash_at_any_step_leaves_the_old_or_the_new_complete(tmp_path, replaces):
    outcomes = []
    for calls in range(200):
        place = tmp_path / str(calls) / "out"
        place.parent.mkdir()
        if replaces:
            write(place, "one")
            (place / "notes.txt").write_text("mine")
        code = die_after(place, calls)
        assert code in (0, 9)
        check_output_folder(place)
        found = contents(place)
        assert not replaces or found.pop("notes.txt") == "mine"
        assert found in [whole("one") if replaces else {}, whole("two")]
        assert set(os.listdir(place.parent)) <= {"out"}
        outcomes.append(found == whole("two"))
        if code == 0:
            break
    assert code == 0 and outcomes[-1] and not outcomes[0]
    assert outcomes == sorted(outcomes), "once the new one is in place it stays"


def test_a_failing_second_rename_puts_the_old_one_back(tmp_path, monkeypatch):
    place = tmp_path / "out"
    write(place, "one")
    rename = os.rename

    def failing(source, target):
        if str(source).endswith("-new"):
            raise OSError(28, "No space left on device", str(target))
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(IxsearchError, match="No space left"):
        write(place, "two")
    assert contents(place) == whole("one")
    assert os.listdir(tmp_path) == ["out"]


def test_two_writers_take_turns(tmp_path):
    place = tmp_path / "out"
    script = (
        "import sys, time\nfrom ixsearch.output.folder import output_folder\n"
        "with output_folder(sys.argv[1]) as new:\n"
        "    (new / 'a').write_text(sys.argv[2]); time.sleep(0.2)\n"
        "    (new / 'b').write_text(sys.argv[2])\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(place), str(i)]) for i in range(3)
    ]
    assert [w.wait() for w in writers] == [0, 0, 0]
    assert (place / "a").read_text() == (place / "b").read_text()
    assert os.listdir(tmp_path) == ["out"]


def test_refuses_a_folder_that_is_not_ours(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(IxsearchError, match=r"thesis\.tex.*new or empty folder"):
        check_output_folder(tmp_path)
    with pytest.raises(IxsearchError), output_folder(tmp_path):
        pytest.fail("must not build")
    assert os.listdir(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize("marker", ["", "{", "[]", '{"written_by": "other", "files": ["a"]}'])
def test_a_marker_that_is_not_ours_does_not_open_the_door(tmp_path, marker):
    (tmp_path / MARKER).write_text(marker)
    with pytest.raises(IxsearchError, match="not written by ixsearch"):
        check_output_folder(tmp_path)


def test_refuses_files_links_and_places_that_cannot_be_swapped(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place, why in [
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "out", "is not a folder"),
        (tmp_path / "link", "symbolic link"),
        (Path("/"), "current folder"),
        (Path("/proc"), "mount point"),
    ]:
        with pytest.raises(IxsearchError, match=why):
            check_output_folder(place)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(IxsearchError, match="current folder"):
        check_output_folder(".")


def test_refuses_a_parent_that_cannot_be_written():
    with pytest.raises(IxsearchError, match="cannot be written"):
        check_output_folder("/proc/self/out")


def test_the_check_leaves_no_trace(tmp_path):
    check_output_folder(tmp_path / "a" / "b")
    assert os.listdir(tmp_path) == []


def test_a_stranger_in_the_old_ones_place_loses_nothing(tmp_path):
    """A crash between the two renames, then somebody makes a folder of that name."""
    place = tmp_path / "out"
    write(place, "one")
    os.rename(place, module._old(place))
    place.mkdir()
    (place / "thesis.tex").write_text("years of work")
    with pytest.raises(IxsearchError, match="not empty"):
        check_output_folder(place)
    assert contents(module._old(place)) == whole("one")
    (place / "thesis.tex").unlink()
    check_output_folder(place)
    assert contents(place) == whole("one")
