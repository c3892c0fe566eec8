"""Which tensors of a checkpoint a model needs, and all that is wrong with them. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ixsearch.patterns.counting import agreeing, counted
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.name_ranges import shortened
from ixsearch.runtime.shards import CheckpointError, Problem, Shards
from ixsearch.runtime.tied_head import head_differs
from ixsearch.runtime.weights import (
    Shapes,
    indexer_shapes,
    layer_of,
    layer_shapes,
    mtp_copy_shapes,
    mtp_own_shapes,
    mtp_shapes,
    scale_of,
    scale_shape,
    top_shapes,
)

FLOATS = ("BF16", "F16", "F32", "F64")
FP8 = "F8_E4M3"


@dataclass(frozen=True)
class WeightPlan:
    """What to load of a checkpoint: checked against the configuration before anything is read."""

    layers: tuple[tuple[str, ...], ...]
    """The full names of each layer's tensors, scales included, in the order of the files."""
    indexer_layers: tuple[int, ...]
    mtp: tuple[str, ...] = ()
    """The full names of the first MTP layer's tensors; empty if the checkpoint has none."""

    @classmethod
    def of(cls, config: DsaConfig, shards: Shards) -> WeightPlan:
        """Find the layers that have an indexer and check every tensor and every file.

        Raises:
            CheckpointError: naming every file that is missing or damaged, and every tensor that is
                missing, unknown, misshapen or of a type that cannot be run.
        """
        has = indexer_layers(config, shards)
        layers = [
            {f"model.layers.{i}.{k}": v for k, v in layer_shapes(config, i, i in has).items()}
            for i in range(config.num_hidden_layers)
        ]
        mtp = _mtp_in(config, shards)
        wanted = top_shapes(config)
        for shapes in (*layers, mtp):
            wanted |= shapes
        problems = [*shards.problems, *_wrong(wanted, shards), *_unknown(wanted, config, shards)]
        if 0 not in has:
            what = "has no indexer weights, so no layer could find its top-k tokens"
            problems.append(Problem("layer 0", f"{what}: is this a DSA checkpoint?"))
        if config.tie_word_embeddings and head_differs(shards):
            what = "is another matrix than the embedding, and tie_word_embeddings is true: set it"
            problems.append(Problem("lm_head.weight", f"{what} to false, or remove the tensor"))
        if problems:
            raise CheckpointError(_message(shards, problems))
        ordered = tuple(_in_file_order(shapes, shards) for shapes in layers)
        return cls(ordered, has, _in_file_order(mtp, shards))


def indexer_layers(config: DsaConfig, shards: Shards) -> tuple[int, ...]:
    """Layers of which the checkpoint has any tensor of an indexer; the others can only be S."""
    names = shards.entries.keys() | shards.unread
    return tuple(
        layer
        for layer in range(config.num_hidden_layers)
        if any(
            f"model.layers.{layer}.self_attn.indexer.{name}" in names
            for name in indexer_shapes(config)
        )
    )


def _mtp_in(config: DsaConfig, shards: Shards) -> Shapes:
    """The first MTP layer's tensors, if the checkpoint has any of them.

    Where the configuration promises no MTP layer, only tensors that no other layer has count: a
    shortened copy of a larger model may hold layers that are not run.
    """
    prefix = f"model.layers.{config.num_hidden_layers}."
    names = shards.entries.keys() | shards.unread
    shapes = mtp_shapes(config)
    signs = shapes if config.num_nextn_predict_layers else mtp_own_shapes(config)
    if not any(prefix + name in names for name in signs):
        return {}
    shapes |= {n: shape for n, shape in mtp_copy_shapes(config).items() if prefix + n in names}
    return {prefix + name: shape for name, shape in shapes.items()}


def _in_file_order(shapes: Shapes, shards: Shards) -> tuple[str, ...]:
    entries = shards.entries
    names = [*shapes, *(s for s in map(scale_of, shapes) if s in entries)]
    return tuple(sorted(names, key=lambda name: (entries[name].file, entries[name].begin)))


def _wrong(wanted: Shapes, shards: Shards) -> Iterator[Problem]:
    """Tensors that are missing, misshapen, or of a type that cannot be run."""
    for name, shape in wanted.items():
        if name in shards.unread:
            continue
        entry = shards.entries.get(name)
        if entry is None:
            yield Problem(name, "is missing")
        elif entry.shape != shape:
            yield Problem(name, f"is {list(entry.shape)}, the configuration says {list(shape)}")
        elif entry.dtype == FP8 and len(shape) == 2:
            yield from _wrong_scale(name, shape, shards)
        elif entry.dtype not in FLOATS:
            known = f"{', '.join(FLOATS)}, and {FP8} of matrices, can be run"
            yield Problem(name, f"is {entry.dtype}: {known}")


def _wrong_scale(name: str, shape: tuple[int, ...], shards: Shards) -> Iterator[Problem]:
    scale, needed = scale_of(name), list(scale_shape(*shape))
    entry = shards.entries.get(scale)
    if scale in shards.unread:
        return
    if entry is None:
        yield Problem(name, f"is {FP8} and its scales, ..._scale_inv, are missing")
    elif list(entry.shape) != needed:
        yield Problem(scale, f"is {list(entry.shape)}, blocks of 128 x 128 need {needed}")
    elif entry.dtype != "F32":
        yield Problem(scale, f"is {entry.dtype}: scales are F32")


def _unknown(wanted: Shapes, config: DsaConfig, shards: Shards) -> Iterator[Problem]:
    """Tensors that nothing would use: a sign of another model, or of a name spelled otherwise."""
    scales = {scale_of(name): name for name, shape in wanted.items() if len(shape) == 2}
    for name in shards.entries:
        if name in wanted or _ignored(name, config):
            continue
        if name not in scales:
            yield Problem(name, "is not a tensor of this model")
        elif (entry := shards.entries.get(scales[name])) and entry.dtype in FLOATS:
            yield Problem(name, f"holds scales of a weight that is {entry.dtype}")


def _ignored(name: str, config: DsaConfig) -> bool:
    """Tensors that many checkpoints have and the model does without: further MTP layers,
    frequencies of rotary embeddings that old converters saved, and the head where it is the
    embedding.
    """
    layer = layer_of(name)
    return (
        (layer is not None and layer >= config.num_hidden_layers)
        or name.endswith("rotary_emb.inv_freq")
        or (name == "lm_head.weight" and config.tie_word_embeddings)
    )


def _message(shards: Shards, problems: list[Problem]) -> str:
    files = [p for p in problems if p.of_file]
    tensors = [p for p in problems if not p.of_file]
    counts = [f"{len(files)} of its files cannot be read"] if files else []
    said = f"{counted(len(tensors), 'tensor')} {agreeing(len(tensors), 'does', 'do')}"
    counts += [f"{said} not fit config.json"] if tensors else []
    lines = [f"{p.subject} {p.what}" for p in files]
    same: dict[str, list[str]] = {}
    for problem in tensors:
        same.setdefault(problem.what, []).append(problem.subject)
    lines += [f"{name} {what}" for what, names in same.items() for name in shortened(names)]
    return "\n  ".join([f"{shards.folder}: {' and '.join(counts)}:", *lines])
