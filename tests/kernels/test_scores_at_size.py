"""The kernels of index scores against their twins at the sizes of published models."""

import pytest
import torch

from ixsearch.kernels import index_scores_paged, index_scores_ragged
from ixsearch.kernels.twins import scores as twins
from ixsearch.kernels.twins.fp8 import FP8

from .score_steps import assert_alike, paged, powers, ragged

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("pair", ["cuda"], indirect=True)]
SHAPES = [(1, 64, 128), (257, 64, 128), (131072 + 7, 64, 128), (40_000, 32, 128)]


@pytest.mark.parametrize(("context", "heads", "dims"), SHAPES)
def test_published_shapes_of_a_prompt(pair, context, heads, dims):
    """The last chunk of one request, then two rows of another."""
    rows = min(context, 300)
    pairs = [(0, context - rows + 1 + t) for t in range(rows)] + [(context, context + 9)] * 2
    q, w, keys, start, end, scales = ragged(pairs, heads, dims, FP8, FP8, groups=1)
    step = q, w, keys, start, end, scales * powers(len(keys), 1, seed=5, most=12)
    first, again = (index_scores_ragged(*step, width=context + 70) for _ in range(2))
    assert torch.equal(first, again)
    assert_alike(first, twins.index_scores_ragged(*step, width=context + 70))


@pytest.mark.parametrize(("context", "heads", "dims"), SHAPES)
@pytest.mark.parametrize("requests", [1, 16])
def test_published_shapes_of_a_decode(pair, context, heads, dims, requests):
    lengths = [max(1, context - 61 * b) for b in range(requests)]
    step = paged(lengths, heads, dims, 64)
    first, again = (index_scores_paged(*step, width=context + 70) for _ in range(2))
    assert torch.equal(first, again)
    assert_alike(first, twins.index_scores_paged(*step, width=context + 70))


def test_both_run_in_a_graph(pair):
    """Nothing waits for the device where the width is given."""
    prompt = ragged([(0, 900 + t) for t in range(40)], 64, 128, FP8, FP8, groups=1)
    decode = paged([900, 31], 64, 128, 64)
    want = index_scores_ragged(*prompt, width=940), index_scores_paged(*decode, width=900)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = index_scores_ragged(*prompt, width=940), index_scores_paged(*decode, width=900)
    for tensor in got:
        tensor.zero_()
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
