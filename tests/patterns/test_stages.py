"""How layers are split into stages, and which stages do not fit."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import Split, newest
from ixsearch.patterns.stages import Stages, spread


@pytest.mark.parametrize(
    ("layers", "stages", "split", "sizes"),
    [
        # Computed by hand from get_pp_indices of vLLM and SGLang, torch.tensor_split for TRT-LLM.
        (78, 2, Split.BEFORE_LAST, (39, 39)),
        (78, 4, Split.BEFORE_LAST, (19, 20, 20, 19)),
        (78, 4, Split.LATER, (19, 19, 20, 20)),
        (78, 4, Split.EARLIER, (20, 20, 19, 19)),
        (78, 8, Split.BEFORE_LAST, (9, 10, 10, 10, 10, 10, 10, 9)),
        (78, 8, Split.LATER, (9, 9, 10, 10, 10, 10, 10, 10)),
        (61, 2, Split.BEFORE_LAST, (31, 30)),
        (61, 2, Split.LATER, (30, 31)),
        (61, 4, Split.BEFORE_LAST, (15, 15, 16, 15)),
        (61, 4, Split.EARLIER, (16, 15, 15, 15)),
        (5, 4, Split.BEFORE_LAST, (1, 1, 2, 1)),
        (7, 4, Split.BEFORE_LAST, (2, 2, 2, 1)),
        (7, 1, Split.LATER, (7,)),
    ],
)
def test_spread(layers: int, stages: int, split: Split, sizes: tuple[int, ...]) -> None:
    assert spread(layers, stages, split) == sizes


@pytest.mark.parametrize("split", Split)
def test_every_split_adds_up(split: Split) -> None:
    for layers in range(1, 20):
        for stages in range(1, layers + 1):
            sizes = spread(layers, stages, split)
            assert sum(sizes) == layers and len(sizes) == stages and min(sizes) >= 1


def test_a_partition_says_where_stages_start() -> None:
    for split in Split:
        assert Stages.of((38, 40)).starts(78, split) == (0, 38)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        (Stages.of((38, 41)), "the partition 38 + 41 = 79, the model has 78 layers"),
        (Stages.of((78, 0)), "a stage of the partition has 0 layers"),
        (Stages.of((80, -2)), "a stage of the partition has -2 layers"),
        (Stages(79), "79 stages for 78 layers"),
        (Stages(78), ""),
        (Stages.of((40, 38)), ""),
    ],
)
def test_what_does_not_fit(stages: Stages, said: str) -> None:
    assert stages.problem(78) == said


def test_where_stages_must_begin_with_full() -> None:
    """Engines that send the indices on do not matter; others may split in two ways."""
    vllm, sglang, other = newest("vllm"), newest("sglang"), newest("tensorrt-llm")
    assert Stages(4).full_starts(78, [vllm, sglang]) == (0, 19, 39, 59)
    assert Stages(4).full_starts(78, [sglang]) == ()
    assert Stages(4).full_starts(78, [vllm, other]) == (0, 19, 20, 39, 40, 59)
    assert Stages.of((38, 40)).full_starts(78, [vllm, other]) == (0, 38)
