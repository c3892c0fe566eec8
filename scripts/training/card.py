"""The tables of the model card."""

from __future__ import annotations

from typing import Any


def tables(figures: dict[str, Any]) -> str:
    """Markdown: the phases, then the exam under patterns for each variant there is."""
    parts = [_phases(figures["phases"])]
    if "variants" in figures:
        parts.append(_patterns(figures["variants"]))
    return "\n\n".join(parts) + "\n"


def _phases(phases: dict[str, Any]) -> str:
    rows = [
        [
            f"`{name}`",
            str(phase["steps"]),
            f"{phase['tokens'] / 1e6:.1f}M",
            f"{phase['seconds']:.0f} (+{phase['first_steps']:.0f})",
            f"{phase['tokens_a_second'] / 1e6:.2f}M",
        ]
        for name, phase in phases.items()
    ]
    return _table(["phase", "steps", "tokens", "seconds (+ compiling)", "tokens/s"], rows)


def _patterns(variants: dict[str, dict[str, Any]]) -> str:
    layers = len(next(iter(variants.values()))["all_full"]["pattern"])
    budgets = [3 * layers // 4, layers // 2, layers // 4]
    rows = [["all F", *(_share(v["all_full"]) for v in variants.values())]]
    for budget in budgets:
        entries = [next(e for e in v["greedy"] if e["full"] == budget) for v in variants.values()]
        rows.append([f"greedy, {budget} F", *map(_named, entries)])
    for place, budget in enumerate(budgets):
        entries = [v["uniform"][place] for v in variants.values()]
        rows.append([f"uniform, {budget} F", *map(_share, entries)])
    for place, budget in enumerate(budgets[1:]):
        draws = [v["random"][place] for v in variants.values()]
        rows.append([f"random, {budget} F: mean (lowest–highest)", *map(_range, draws)])
    accepted = [_percent(v["acceptance"]["solution"]) for v in variants.values()]
    rows.append(["MTP drafts accepted", *accepted])
    return _table(["held-out problems solved", *(f"`{name}`" for name in variants)], rows)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _share(entry: dict[str, Any]) -> str:
    return f"{_percent(entry['accuracy'])} (loss {entry['loss']:.2g})"


def _named(entry: dict[str, Any]) -> str:
    return f"{_share(entry)} `{entry['pattern']}`"


def _range(draws: dict[str, Any]) -> str:
    return f"{_percent(draws['mean'])} ({_percent(draws['lowest'])}–{_percent(draws['highest'])})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
