"""What `validate` was given: a file or the letters themselves, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ixsearch.patterns import (
    Finding,
    IxsearchError,
    Pattern,
    PatternError,
    PatternFile,
    Place,
    check_for_model,
    check_letters,
    check_same_model,
    read_model_config,
    read_pattern_file,
)


@dataclass(frozen=True)
class Subject:
    """A pattern under check. `letters` is empty when no pattern could be read."""

    source: str
    format: str
    letters: str = ""
    file: PatternFile | None = None
    findings: tuple[Finding, ...] = ()
    scope: str = ""
    """What the pattern was checked against, for the verdict."""

    @property
    def ok(self) -> bool:
        return all(f.level != "error" for f in self.findings)

    @property
    def pattern(self) -> Pattern | None:
        """The pattern, when the letters make one."""
        try:
            return Pattern(self.letters)
        except PatternError:
            return None

    @property
    def place(self) -> Place | None:
        return self.file.place if self.file else None

    def with_findings(self, *findings: Finding) -> Subject:
        return replace(self, findings=(*self.findings, *findings))


def read_subject(given: str) -> Subject:
    """Read a pattern file, or take `given` as the letters when no file has that name."""
    if given and _exists(path := Path(given)):
        return _read_file(path)
    if _looks_like_path(given):
        mend = "check the path; or give the letters of a pattern, F and S"
        missing = Finding("error", "no such file", mend, Place(given))
        return Subject(given, "missing file", findings=(missing,))
    subject = Subject("pattern on the command line", "letters", given)
    return subject.with_findings(*check_letters(given))


def check_subject(subject: Subject, model_path: Path | None) -> Subject:
    """Add what checks against a model find."""
    if model_path is None:
        scope = " as a pattern; give --model to check it against a model"
        return replace(subject, scope=scope)
    try:
        model = read_model_config(model_path)
    except IxsearchError as error:
        return subject.with_findings(Finding("error", str(error)))
    if subject.letters:
        subject = subject.with_findings(*check_for_model(subject.letters, model, subject.place))
    if subject.file:
        said = subject.file.model
        subject = subject.with_findings(*check_same_model(said, model, subject.place))
    return replace(subject, scope=f" for {model.source}")


def _read_file(path: Path) -> Subject:
    subject = Subject(str(path), "pattern file")
    if path.is_dir():
        inside = path / "pattern.yaml"
        mend = f"give {inside}" if inside.exists() else "give the pattern.yaml itself"
        finding = Finding("error", "this is a folder", mend, Place(str(path)))
        return replace(subject, format="folder").with_findings(finding)
    try:
        file = read_pattern_file(path)
    except PatternError as error:
        return subject.with_findings(*(error.findings or (Finding("error", str(error)),)))
    letters = file.pattern.letters
    found = check_letters(letters, file.place)
    return replace(subject, letters=letters, file=file).with_findings(*found)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _looks_like_path(given: str) -> bool:
    """Whether no reader would take `given` for letters of a pattern."""
    if "/" in given or "\\" in given or "." in given:
        return True
    letters = sum(c in "FSfs" for c in given)
    return bool(given) and letters * 2 < len(given)


def sound_pattern(given: str, model: Path) -> Subject:
    """Read a pattern that must fit the model. Raises `PatternError` with all that is wrong."""
    return _sound(check_subject(_sound(read_subject(given)), model))


def _sound(subject: Subject) -> Subject:
    if subject.ok:
        return subject
    raise PatternError.of(tuple(f for f in subject.findings if f.level == "error"))
