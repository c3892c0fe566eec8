"""What an engine makes of it, as findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ixsearch.patterns.counting import agreeing, named_layers
from ixsearch.patterns.dialects import Dialect, Resolved
from ixsearch.patterns.dialects.keys import is_nested, model_values
from ixsearch.patterns.findings import Finding, Place, numbers
from ixsearch.patterns.model_config import ModelConfig
from ixsearch.patterns.reading import Reading
from ixsearch.patterns.stages import Stages

_SETTERS = ("indexer_types", "index_topk_pattern", "index_topk_freq")
_STRIP = "`ixsearch strip-indexers MODEL pattern.yaml COPY` writes a checkpoint without them"


@dataclass(frozen=True)
class Setting:
    """What a run is checked against."""

    reading: Reading
    written: Mapping[str, str]
    """Key -> the letters that it means."""
    model: ModelConfig | None = None
    stages: Stages | None = None
    mtp: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """The keys that the thing read sets; those of the model itself are not its fault."""
        return frozenset(self.reading.keys)

    @property
    def model_type(self) -> str:
        return self.model.model_type if self.model else ""

    @property
    def place(self) -> Place | None:
        for key in (*self.written, *self.reading.spots):
            if place := self.reading.place(key):
                return place
        return None


def check_run(run: Resolved, setting: Setting) -> list[Finding]:
    """Everything that this engine has against the pattern, or does with it in silence."""
    return [replace(found, engines=(run.dialect.name,)) for found in _check(run, setting)]


def _check(run: Resolved, setting: Setting) -> list[Finding]:
    if reason := _cannot_read(run.dialect, setting.reading):
        mend = "write the overrides as one JSON object in single quotes"
        return [Finding("IX405", reason, mend, setting.place)]
    if run.failure:
        return [_failure(run, setting)]
    return [
        *_check_levels(run, setting),
        *_check_keys(run, setting),
        *_check_model(run, setting),
        *_check_weights(run, setting),
        *_check_lost(run, setting),
        *_check_letters(run, setting),
        *_check_stages(run, setting),
        *_check_loading(run, setting),
        *_check_mtp(run, setting),
    ]


_SPELL = {
    "indexer_types": 'write a list of "full" and "shared", one a layer',
    "index_topk_pattern": "write F and S alone, one letter a layer",
    "index_topk_freq": "write the letters of the pattern instead, one a layer",
}


def _failure(run: Resolved, setting: Setting) -> Finding:
    """Why it stops, told of the key that it reads first."""
    reads = run.dialect.reads if not run.dialect.only_types else ("indexer_types", *_SETTERS[1:])
    first = next((key for key in reads if key in setting.keys), reads[-1])
    place = setting.reading.place(first) or setting.place
    return Finding("IX405", str(run.failure), _SPELL[first], place)


def _check_levels(run: Resolved, setting: Setting) -> list[Finding]:
    """Keys that stand where no engine looks."""
    if not run.misplaced:
        return []
    nested = setting.model is not None and is_nested(setting.model.values)
    level = "within text_config" if nested else "at the top, not within text_config"
    stands = agreeing(len(run.misplaced), "stands where it is", "stand where they are")
    message = f"{' and '.join(run.misplaced)} {stands} not read"
    place = setting.reading.place(run.misplaced[0]) or setting.place
    mend = f"write {agreeing(len(run.misplaced), 'it', 'them')} {level}"
    return [Finding("IX402", message, mend, place)]


def _check_model(run: Resolved, setting: Setting) -> list[Finding]:
    """Without a model: whether what is read depends on it."""
    types = "indexer_types" in setting.keys or setting.reading.portable
    if setting.model is not None or types or not run.dialect.filled_by or not setting.written:
        return []
    if "indexer_types" not in run.dialect.reads:
        return []
    verb = agreeing(len(setting.written), "is", "are")
    message = f"{' and '.join(setting.written)} {verb} not read of GLM models"
    mend = "give --model; or set indexer_types too, as `ixsearch export` does"
    return [Finding("IX412", message, mend, setting.place)]


def _check_weights(run: Resolved, setting: Setting) -> list[Finding]:
    """F in what runs, without indexer weights, where the written letters do not have it."""
    model = setting.model
    if model is None or not model.indexer_layers or run.letters in setting.written.values():
        return []
    owners = set(model.indexer_layers)
    bare = [i for i, c in enumerate(run.letters) if c == "F" and i not in owners]
    if not bare:
        return []
    effect = run.dialect.bare_full or "what it does then is not known"
    message = f"F on {named_layers(bare)}, without indexer weights: {effect}"
    mend = "write the letters as index_topk_pattern; `ixsearch export` does, for each engine"
    return [Finding("IX413", message, mend, setting.place)]


def _cannot_read(dialect: Dialect, reading: Reading) -> str:
    if reading.engine != dialect.engine or not reading.mapping or dialect.yaml_mapping is None:
        return ""
    return f"{dialect.yaml_mapping}: it wants a JSON string, not a mapping"


def _check_keys(run: Resolved, setting: Setting) -> list[Finding]:
    if run.needs:
        mend = f"set {run.needs[0]} to true too"
        message = f"all layers are F: {' or '.join(run.needs)} is not set"
        return [Finding("IX404", message, mend, setting.place)]
    mine = [key for key in run.unread if key in setting.keys and key != "use_index_cache"]
    if "index_topk_freq" in mine:  # what is said of it holds for its offset too
        mine = [key for key in mine if key != "index_skip_topk_offset"]
    if set(run.decided_by) & setting.keys:  # then the file contradicts itself: IX301 is said
        mine = [key for key in mine if _agrees(key, run, setting)]
    found = [_unread(key, run, setting) for key in mine]
    if setting.reading.portable:
        return [f for f in found if f.code == "IX402"][:1]
    return found


def _unread(key: str, run: Resolved, setting: Setting) -> Finding:
    place = setting.reading.place(key) or setting.place
    if _agrees(key, run, setting):
        message = f"{key} is not read, which makes no difference here"
        return Finding("IX403", message, place=place)
    message = f"{key} is not read: {_instead(run)}"
    return Finding("IX402", message, _mend_unread(run.dialect, setting), place)


def _agrees(key: str, run: Resolved, setting: Setting) -> bool:
    """Whether what runs is what the key means all the same."""
    spelled = "index_topk_freq" if key == "index_skip_topk_offset" else key
    meant = setting.written.get(spelled)
    return meant is None or _leniently(meant, len(run.letters)) == run.letters


def _leniently(letters: str, layers: int) -> str:
    """As an engine reads letters that it does read."""
    return "".join("S" if c == "S" else "F" for c in letters[:layers]).ljust(layers, "F")


def _instead(run: Resolved) -> str:
    if run.decided_by:
        return f"what runs is from {' and '.join(run.decided_by)}"
    return "all layers are F" if "S" not in run.letters else "the config's own pattern runs"


def _mend_unread(dialect: Dialect, setting: Setting) -> str:
    if not dialect.shares(setting.model_type):
        return "no setting makes it share indices for this model"
    names = " and ".join(key for key in dialect.writes if key != "use_index_cache")
    return f"set {names}; `ixsearch export` writes what this engine reads"


def _check_lost(run: Resolved, setting: Setting) -> list[Finding]:
    """Keys of config.json that some versions of transformers drop before the engine sees them."""
    versions, config = run.dialect.may_pop, setting.reading.config
    if not versions or config is None or config.model_type != "glm_moe_dsa":
        return []
    values = model_values(config.values)
    lost = [k for k in _SETTERS[1:] if values.get(k) is not None]
    if not lost or values.get("indexer_types") is not None:
        return []
    message = (
        f"{' and '.join(lost)} of this config.json never {agreeing(len(lost), 'arrives', 'arrive')}"
        f" where transformers {versions} is installed"
    )
    mend = "give the pattern with --hf-overrides, or indexer_types in the file too"
    return [Finding("IX411", message, mend, setting.place)]


def _check_letters(run: Resolved, setting: Setting) -> list[Finding]:
    found = []
    if run.bent or run.dropped:
        mend = "write F or S for every layer, and nothing else"
        found.append(Finding("IX410", _bent(run), mend, setting.place))
    if run.letters.startswith("S"):
        effect = run.dialect.first_shared or "what it then reads is not known"
        found.append(
            Finding("IX408", f"layer 0 becomes S: {effect}", "make layer 0 F", setting.place)
        )
    return found


def _bent(run: Resolved) -> str:
    missing = [layer for layer, said in run.bent.items() if not said]
    parts = []
    for letter in "FS":
        bent = [i for i, said in run.bent.items() if said and run.letters[i] == letter]
        is_taken = f"{agreeing(len(bent), 'is', 'are')} taken for {letter}"
        parts += [f"{named_layers(bent)} {is_taken}"] if bent else []
    if missing:
        is_missing = agreeing(len(missing), "is", "are")
        parts.append(f"{named_layers(missing)} {is_missing} missing and taken for F")
    if run.dropped:
        last = agreeing(run.dropped, "letter is", f"{run.dropped:,} letters are")
        parts.append(f"the last {last} dropped")
    return ", ".join(parts)


def _check_stages(run: Resolved, setting: Setting) -> list[Finding]:
    stages, dialect = setting.stages, run.dialect
    if stages is None or not dialect.needs_full_starts:
        return []
    if stages.problem(len(run.letters)):
        return []
    starts = stages.starts(len(run.letters), dialect.split)
    shared = [layer for layer in starts if run.letters[layer] == "S"]
    if not shared:
        return []
    begins = agreeing(len(shared), "a pipeline stage begins", "pipeline stages begin")
    which = agreeing(len(shared), "which is S, and has", "which are S, and have")
    message = f"{begins} with {named_layers(shared)}, {which} for indices {dialect.stage.value}"
    mend = f"write F there, or move the stages (they begin at {numbers(starts, 16)})"
    where = setting.reading.letter_place(next(iter(setting.written), ""), shared[0])
    return [Finding("IX212", message, mend, where or setting.place)]


def _check_loading(run: Resolved, setting: Setting) -> list[Finding]:
    error, model = run.dialect.spare_indexers, setting.model
    if error is None or model is None or model.indexer_layers is None:
        return []
    spare = [i for i in model.indexer_layers if run.letters[i : i + 1] == "S"]
    if not spare:
        return []
    message = f"{error}, on CUDA: the checkpoint has indexer weights on S layers ({numbers(spare)})"
    return [Finding("IX406", message, _STRIP, setting.place)]


def _check_mtp(run: Resolved, setting: Setting) -> list[Finding]:
    if not setting.mtp or "S" not in run.mtp_letters:
        return []
    message = "the indexer of the MTP layer is skipped: by config.json it is S"
    mend = "give the pattern as an override instead: those do not reach the draft model"
    return [Finding("IX407", message, mend, setting.place)]
