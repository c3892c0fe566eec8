"""The report's sections on where its figures come from, and what lies beside it."""

from __future__ import annotations

import shlex

from ixsearch.output import figures as fig
from ixsearch.output.markdown import line, table
from ixsearch.output.outcome import Outcome, Totals
from ixsearch.output.serving import Setup, note, settings_file, setups

ROUNDING = 0.005
"""Of forward-equivalents: what is not shown."""


def measured_on(outcome: Outcome) -> list[str]:
    """Model, machine, versions, seed and documents: without them no figure means anything."""
    model = outcome.model
    versions = ", ".join(f"{name} {v}" for name, v in model.versions.items())
    facts = table(
        "what | value",
        (
            ("model", f"{model.name} ({model.architecture})"),
            ("layers", f"{model.num_layers}, {len(model.indexer_layers)} with an indexer"),
            ("index_topk", model.index_topk),
            ("config, weights", f"{model.config_hash}, {model.weights_hash}"),
            ("device, type, caches", f"{model.device}, {model.dtype}, {model.cache}"),
            ("versions", versions),
            ("ixsearch", f"{outcome.tool_version}, {outcome.date}, seed {outcome.seed}"),
            ("objective", outcome.objective),
            ("constraints", outcome.constraints or "none"),
            ("command", f"`{outcome.command_shown}`"),
        ),
    )
    documents = table(
        "documents | source | count | tokens | scored | past index_topk % | digest",
        (
            (
                s.role,
                s.source_shown,
                s.documents,
                s.tokens,
                s.scored_tokens,
                fig.percent(s.share_past_topk),
                s.digest,
            )
            for s in outcome.document_sets
        ),
    )
    return ["## What it was measured on", "", *facts, "", *documents]


def search(outcome: Outcome) -> list[str]:
    """What the search cost, and how to look at its study."""
    phases = ", ".join(f"{name} {fig.seconds(s)}" for name, s in outcome.totals.seconds.items())
    return [
        "## The search",
        "",
        f"{len(outcome.trials)} trials; {_cost(outcome.totals)}; {phases}.",
        "",
        f"Every proposal is a trial of the Optuna study `{line(outcome.study_name)}`:",
        "",
        "```",
        "pip install optuna-dashboard",
        f"optuna-dashboard {shlex.quote(outcome.storage_shown)}",
        "```",
    ]


def _cost(totals: Totals) -> str:
    """Of the study, and of this call where there were others."""
    here = f"{totals.evaluations} evaluations, {totals.forward_equivalents:.2f} forward-equivalents"
    whole = totals.forward_equivalents_of_study
    if abs(whole - totals.forward_equivalents) < ROUNDING:
        return here
    return f"{whole:.2f} forward-equivalents in all calls of this study; in this one {here}"


_PATTERN = (
    "- `pattern.yaml`: the pattern, its model and where it comes from",
    "- `overrides/`: the settings that switch it on; `hf_overrides.json` for other engines",
)
_NOTHING = ("- no `pattern.yaml` and no `overrides/`: there is nothing to serve",)


def files(outcome: Outcome) -> list[str]:
    """What lies beside the report, and the commands that serve it."""
    return [
        "## Files, and how to serve",
        "",
        *(_NOTHING if outcome.pattern is None else _PATTERN),
        "- `trials.csv`: every finished trial; `documents.csv`: which documents their numbers are",
        *(line for setup in setups(outcome) for line in _commands(outcome, setup)),
        *(["", said] if (said := note(outcome)) else []),
    ]


def _commands(outcome: Outcome, setup: Setup) -> list[str]:
    """Of one engine, with what is to be known first."""
    told = [part for text in setup.said() for part in ("", f"**{line(text)}**")]
    settings = settings_file(outcome, setup)
    return [*told, "", f"{setup.name}:", "", "```", *setup.commands(settings), "```"]
