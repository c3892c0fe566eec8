"""What a command was given as a pattern and as a model, read and checked."""

from __future__ import annotations

from pathlib import Path

from ixsearch.patterns import (
    PRESETS,
    Finding,
    IxsearchError,
    ModelConfig,
    Options,
    Pattern,
    PatternError,
    Place,
    Report,
    lint,
    preset,
    read_anything,
    read_model_config,
)

GIVE = "give a pattern.yaml, or the letters, one a layer"


def check(given: str, model: str | None, options: Options) -> Report:
    """Read and check a pattern; that the model cannot be read is among the findings."""
    reading = read_anything(given)
    if model is None:
        return lint(reading, None, options)
    try:
        return lint(reading, read_model(model), options)
    except IxsearchError as error:
        report = lint(reading, None, options)
        unread = error.findings or (Finding("IX215", str(error), _mend(model), Place(model)),)
        return _with(report, unread)


def read_model(given: str) -> ModelConfig:
    """A checkpoint folder, a config.json, or a preset. Raises `ModelError`."""
    if given in PRESETS and not Path(given).exists():
        return preset(given)
    return read_model_config(given)


def sound_pattern(given: str, model: Path) -> Report:
    """Read a pattern that must fit the model. Raises `PatternError` with all that is wrong."""
    report = lint(read_anything(given), read_model_config(model), Options(serving=False))
    wrong = tuple(f for f in report.findings if f.level == "error")
    if wrong or report.pattern is None:
        raise PatternError.of(wrong) if wrong else PatternError(f"{given} holds no pattern: {GIVE}")
    return report


def sound_patterns(given: dict[str, str], model: Path) -> list[Pattern]:
    """Several patterns that must fit the model, by what the command line calls them.

    Raises `PatternError` with all that is wrong, and with which of them.
    """
    sound: list[Pattern] = []
    wrong: list[str] = []
    findings: list[Finding] = []
    for name, text in given.items():
        try:
            sound.append(sound_pattern(text, model).pattern)
        except PatternError as error:
            findings += error.findings
            said = [str(f) if f.place else f"{text}: {f}" for f in error.findings]
            wrong += [f"{name}: {line}" for line in said or [str(error)]]
    if wrong:
        raise PatternError("\n".join(wrong), tuple(findings))
    return sound


def _with(report: Report, findings: tuple[Finding, ...]) -> Report:
    from dataclasses import replace

    return replace(report, findings=(*report.findings, *findings))


def _mend(model: str) -> str:
    near = nearest_preset(model)
    hint = f"did you mean the preset {near}? " if near else ""
    return f"{hint}give a checkpoint folder, its config.json, or one of {', '.join(PRESETS)}"


def nearest_preset(model: str) -> str | None:
    """The preset whose name is nearly `model`."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(model.lower(), PRESETS, n=1, cutoff=0.6)), None)
