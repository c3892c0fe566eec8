"""`ixsearch inspect` against known models, and against what safetensors and torch find."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from math import prod
from pathlib import Path

import pytest
from safetensors import safe_open
from typer.testing import CliRunner

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.cli.app import app
from ixsearch.output.inspection import duration, size
from ixsearch.runtime import read_speed
from ixsearch.runtime.config import EPS
from ixsearch.runtime.quantise import quantise_checkpoint

PUBLISHED = {"deepseek-v3.2": 671.0, "glm-5": 744.0}
"""Billions of parameters of the main model, as their makers say (DeepSeek's without indexers)."""


def inspect(*args: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["inspect", *map(str, args)], env={"COLUMNS": "120"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@cache
def found(*args: object) -> dict:
    code, out, err = inspect(*args, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def in_files(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Name -> type, values and bytes of every tensor, by safetensors."""
    tensors = {}
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as handle:
            for name in handle.keys():  # noqa: SIM118
                part = handle.get_slice(name)
                count = prod(part.get_shape())
                width = {"BF16": 2, "F32": 4, "F8_E4M3": 1}[part.get_dtype()]
                tensors[name] = (part.get_dtype(), count, count * width)
    return tensors


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_counts_of_parameters(name):
    seen = found(name)
    indexers = seen["weights"]["indexer"]["parameters"] if name.startswith("deepseek") else 0
    total = seen["total"]["parameters"] - indexers
    assert total / 1e9 == pytest.approx(PUBLISHED[name], abs=0.2)


def test_deepseek_with_its_mtp_layer():
    """685 billion parameters with MTP, and 690 GB of files in FP8."""
    seen = found("deepseek-v3.2")
    assert seen["total_with_mtp"]["parameters"] / 1e9 == pytest.approx(685, abs=0.5)
    assert seen["total_with_mtp"]["in_fp8"] / 1e9 == pytest.approx(690, abs=1)
    assert seen["mtp_layers"] == [61] and seen["indexer_layers"] == list(range(61))
    assert seen["stored"] is None and seen["dtypes"] == {}


@pytest.mark.parametrize("name", ["deepseek-v3.2", "glm-5", "glm-5.1", "glm-5.2"])
def test_published_cache_sizes(name):
    """132 bytes an indexer key, 656 a latent in fp8_ds_mla; 576 values in bfloat16."""
    seen = found(name)
    caches = {c["format"]: c for c in seen["caches"]}
    small = caches["fp8_ds_mla, indexer in fp8"]
    assert small["latent_per_token_and_layer"] == 656
    assert small["indexer_per_token_and_full_layer"] == 132
    assert caches["bfloat16"]["latent_per_token_and_layer"] == 2 * 576
    assert caches["float32"]["indexer_per_token_and_full_layer"] == 4 * 128
    count = seen["config"]["num_hidden_layers"]
    full, most = seen["pattern"].count("F"), len(seen["indexer_layers"])
    assert small["per_1k_tokens_baseline"] == 1024 * (count * 656 + most * 132)
    assert small["per_1k_tokens_own_pattern"] == 1024 * (count * 656 + full * 132)


def test_glm_5_2_has_indexers_on_some_layers():
    seen = found("glm-5.2")
    assert len(seen["indexer_layers"]) == 21 == seen["pattern"].count("F")
    more = found("glm-5.1")["weights"]["indexer"]["parameters"]
    assert seen["weights"]["indexer"]["parameters"] * 78 == more * 21


def test_no_column_shows_what_cannot_run():
    code, out, _ = inspect("glm-5.2")
    assert code == 0 and "21 F, the most" in out and "all-F" not in out


def test_the_bundled_model_as_its_files_are():
    seen, tensors = found(), in_files(MODEL_FOLDER)
    assert sum(seen["stored"].values()) == sum(size for _, _, size in tensors.values())
    assert seen["total_with_mtp"]["parameters"] == sum(count for _, count, _ in tensors.values())
    assert seen["stored"]["MTP"] == sum(
        size for name, (_, _, size) in tensors.items() if name.startswith("model.layers.16.")
    )
    assert seen["stored"]["indexer"] == sum(
        size
        for name, (_, _, size) in tensors.items()
        if ".indexer." in name and "layers.16." not in name
    )
    assert seen["total"]["in_bf16"] == sum(seen["stored"].values()) - seen["stored"]["MTP"]
    assert "other" not in seen["stored"]
    (one,) = seen["offload"]
    assert one["read_bytes"] == seen["total"]["in_bf16"]
    assert seen["problem"] is None


def test_a_checkpoint_in_fp8(tmp_path):
    """What is predicted for FP8 is what the quantiser writes."""
    folder = quantise_checkpoint(MODEL_FOLDER, tmp_path / "fp8")
    seen, tensors = found(folder), in_files(folder)
    assert seen["total_with_mtp"]["in_fp8"] == sum(size for _, _, size in tensors.values())
    by_type = {kind: 0 for kind, _, _ in tensors.values()}
    for kind, _, count in tensors.values():
        by_type[kind] += count
    assert seen["dtypes"] == by_type


def test_the_table():
    code, out, err = inspect("deepseek-v3.2", "--read-gbps", 2)
    assert (code, err) == (0, "")
    for words in (
        "deepseek_v32, DeepseekV32ForCausalLM",
        "layers 3-60: n_routed_experts 256",
        "fp8_ds_mla, indexer in fp8",
        "6 min at 2 GB/s",
        "671.9 B",
    ):
        assert words in out, out


def test_a_configuration_alone(tmp_path):
    config = json.loads((MODEL_FOLDER / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    for place in (tmp_path, tmp_path / "config.json"):
        seen = found(place)
        assert seen["stored"] is None and seen["mtp_layers"] == [16]
        assert seen["weights"] == found()["weights"]


def test_bandwidth_given_and_measured(monkeypatch):
    (one,) = found("--read-gbps", 0.5)["offload"]
    assert one["seconds"] == pytest.approx(one["read_bytes"] / 0.5e9)
    monkeypatch.setattr(read_speed, "SAMPLE", 1 << 20)
    (one,) = found("--measure-read")["offload"]
    assert one["gigabytes_per_second"] > 0
    assert one["seconds"] == pytest.approx(one["read_bytes"] / one["gigabytes_per_second"] / 1e9)


@pytest.mark.parametrize(
    "args",
    [
        ("--latent-norm-eps", EPS[1] * 1.01),
        ("--latent-norm-eps", "nan"),
        ("--read-gbps", 0),
        ("--read-gbps", "nan"),
        ("--read-gbps", "inf"),
        ("--read-gbps", 1, "--measure-read"),
        ("glm-5", "--measure-read"),
    ],
)
def test_wrong_usage(args):
    code, out, err = inspect(*args)
    assert (code, out) == (2, "") and "Usage" in err


def test_a_damaged_checkpoint_is_shown_and_refused(tmp_path):
    for file in MODEL_FOLDER.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    shard = tmp_path / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1000])
    code, out, err = inspect(tmp_path)
    assert code == 1 and "Weights" in out
    assert f"{shard.name} cannot be used: its tensors take" in err


def test_no_such_model_and_no_dsa_model(tmp_path):
    code, out, err = inspect(tmp_path / "nowhere")
    assert (code, out) == (1, "") and "no such folder" in err
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 2, "architectures": ["X"]}')
    code, out, err = inspect(tmp_path)
    assert (code, out) == (1, "") and "model_type is None" in err


def test_a_name_that_is_nearly_a_preset():
    code, out, err = inspect("deepseek-v3.3")
    assert (code, out) == (1, "") and err.endswith("; did you mean the preset deepseek-v3.2?\n")
    assert "did you mean" not in inspect("./nowhere")[2]


def test_torch_is_not_needed():
    code = (
        "import sys, ixsearch.cli.app as a, typer.testing as t\n"
        "assert t.CliRunner().invoke(a.app, ['inspect', '--json']).exit_code == 0\n"
        "print([m for m in ('torch', 'optuna', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_how_figures_are_spelt():
    assert [size(n) for n in (0, 999, 1000, 689_700_000_000, 1_340_000_000_000)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "689.7 GB",
        "1.34 TB",
    ]
    assert [duration(s) for s in (1.5, 600, 8000)] == ["1.5 s", "10 min", "2.2 h"]
