import io
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from ixsearch.output.report import report
from ixsearch.output.served_model import ServedModel
from ixsearch.output.serving import BUNDLED_NOTE, setups
from ixsearch.output.tables import print_serving
from ixsearch.output.write import write_outcome
from ixsearch.patterns import ModelConfig


@pytest.fixture
def served(outcome):
    """As `outcome`, with what is known of its checkpoint."""
    config = ModelConfig(
        *("/models/drop-16", "DeepseekV32ForCausalLM", "deepseek_v32", 16, 48, "c0ffee12"),
        indexer_layers=tuple(range(16)),
        values={"model_type": "deepseek_v32", "num_hidden_layers": 16},
    )
    folder = Path("/models/drop-16")
    model = ServedModel(
        str(folder), folder, Path("/models/drop-16-stripped"), Path("/o/out"), config
    )
    return replace(outcome, served_model=model)


def on_terminal(outcome) -> str:
    out = io.StringIO()
    print_serving(Console(file=out, width=80), outcome)
    return out.getvalue()


def test_a_checkpoint_without_spare_indexers_is_served_as_it_is(served):
    model = served.served_model
    owners = replace(model.config, indexer_layers=served.pattern.full_layers)
    vllm, _ = setups(replace(served, served_model=replace(model, config=owners)))
    assert vllm.findings == () and vllm.commands("v.yaml") == [
        "vllm serve /models/drop-16 --config v.yaml"
    ]
    vllm, _ = setups(served)
    assert [f.code for f in vllm.findings] == ["IX406"]
    assert vllm.commands("v.yaml")[1] == "vllm serve /models/drop-16-stripped --config v.yaml"


def test_where_all_f_is_served_nothing_is_stripped(served, none_recommended):
    kept = replace(none_recommended, served_model=served.served_model)
    assert all(not s.findings and not s.strip for s in setups(kept))


def test_commands_are_whole_lines_at_any_width(served):
    lines = on_terminal(served).splitlines()
    for setup in setups(served):
        for command in setup.commands(f"/o/out/overrides/{setup.export.dialect.engine}.yaml"):
            assert f"  {command}" in lines


def test_the_bundled_model_is_said_not_to_be_for_engines(served, study, tmp_path):
    bundled = replace(served, served_model=replace(served.served_model, is_bundled=True))
    folder = write_outcome(tmp_path / "out", bundled, study)
    files = [folder / "report.md", *(folder / "overrides").glob("*.yaml")]
    assert len(files) == 3
    for text in (" ".join(on_terminal(bundled).split()), *(f.read_text() for f in files)):
        assert text.count(BUNDLED_NOTE) == 1
    for text in (on_terminal(served), report(served, None)):
        assert BUNDLED_NOTE not in text


def test_a_path_cannot_end_a_comment(served, study, tmp_path):
    odd = replace(served.served_model, folder=Path("/m/a\nhf-overrides: {}"))
    folder = write_outcome(tmp_path / "out", replace(served, served_model=odd), study)
    read = yaml.safe_load((folder / "overrides/vllm.yaml").read_text())
    assert read["hf-overrides"]["index_topk_pattern"] == served.pattern.letters
