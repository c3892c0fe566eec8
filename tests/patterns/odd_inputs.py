"""Whatever `ixsearch validate` may be given: arguments, files, models, engines, stages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

import ixsearch.bundled
from ixsearch.patterns import PRESETS, Stages
from ixsearch.patterns.dialects import DIALECTS

from .good_files import CONFIG, GLM, INDEX, NAMES, header
from .odd_files import CONTENTS, FILE_NAMES, mutated
from .odd_values import configs

BUNDLED = str(Path(ixsearch.bundled.__file__).parent)


@dataclass(frozen=True)
class Given:
    """An argument of `validate`, and the files that are there. `{}` stands for their folder."""

    argument: str
    files: dict[str, bytes] = field(default_factory=dict)
    model: str | None = None
    engines: tuple[str, ...] = ()
    stages: Stages | None = None
    mtp: bool = False


ARGUMENTS = st.one_of(
    st.text("FSfs", max_size=30),
    st.text("FSfs ,xЅ\u200b\0", max_size=12),
    st.text(max_size=30),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=4),
    st.sampled_from(["{}", "{}/", "{}/absent.yaml", "..", "/", "~", "pattern.yaml", "glm-5"]),
)
MODELS = st.one_of(
    st.none(),
    st.sampled_from([BUNDLED, *PRESETS]),
    st.just("{}/model"),
    st.sampled_from(["", "absent", "deepseek-v3", "{}", "{}/x.json", "a\0b", "x" * 5000, "\udcff"]),
)
ENGINES = st.lists(
    st.sampled_from(
        [
            *(row.engine for row in DIALECTS),
            *(f"{row.engine}=={row.read_to}" for row in DIALECTS if row.versions),
            *("vllm==0.99", "sglang==0.5.99", "vlm", "hf", "atom==1!2rc1", "tensorrt-llm==1"),
        ]
    ),
    max_size=3,
).map(tuple)
STAGES = st.one_of(
    st.none(),
    st.integers(1, 20).map(Stages),
    st.just(Stages(10**9)),
    st.lists(st.integers(-1, 9), min_size=1, max_size=5).map(Stages.of),
)


@st.composite
def checkpoints(draw: st.DrawFn) -> dict[str, bytes]:
    """A folder `model`, hardly ever all right."""
    config = json.dumps(draw(st.one_of(st.just(CONFIG), st.just(GLM), configs())))
    files = {"model/config.json": draw(mutated(config.encode()))}
    names = draw(st.lists(st.one_of(st.sampled_from(NAMES), st.text(max_size=9)), max_size=9))
    weights = draw(st.sampled_from(["none", "index", "header", "both"]))
    if weights in ("index", "both"):
        index = draw(st.sampled_from([INDEX, json.dumps({"weight_map": dict.fromkeys(names, 1)})]))
        files["model/model.safetensors.index.json"] = draw(mutated(index.encode()))
    if weights in ("header", "both"):
        files["model/model.safetensors"] = draw(mutated(header(names)))
    return files


@st.composite
def inputs(draw: st.DrawFn) -> Given:
    model = draw(MODELS)
    files = draw(checkpoints()) if model == "{}/model" else {}
    kind = draw(st.sampled_from(["file", "file", "file", "folder", "argument"]))
    if kind == "file":
        name = draw(FILE_NAMES)
        files[name] = draw(CONTENTS)
        argument = f"{{}}/{name}"
    elif kind == "folder":
        files |= draw(checkpoints())
        argument = "{}/model"
    else:
        argument = draw(ARGUMENTS)
    return Given(argument, files, model, draw(ENGINES), draw(STAGES), draw(st.booleans()))
