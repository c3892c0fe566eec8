"""RoPE as multiplication by complex numbers; the indexer's query and key."""

import pytest
import torch
import torch.nn.functional as F

from ixsearch.kernels import indexer_key_store, indexer_query, rope

from .draws import randn

pytestmark = pytest.mark.usefixtures("pair")


def angles(tokens, pairs):
    turn = torch.arange(tokens)[:, None] * torch.tensor([1.0, 0.3, 0.05, 0.01])[:pairs]
    return turn.cos(), turn.sin(), turn


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rope_turns_complex_numbers(layout):
    x = randn(5, 8)
    cos, sin, turn = angles(5, 4)
    pairs = x.view(5, 4, 2) if layout == "interleaved" else x.view(5, 2, 4).transpose(1, 2)
    turned = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(turn), turn)
    want = torch.view_as_real(turned)
    want = want if layout == "interleaved" else want.transpose(1, 2)
    torch.testing.assert_close(rope(x, cos, sin, layout), want.reshape(5, 8))


def test_unknown_layout():
    x, one, nowhere = torch.zeros(1, 2), torch.ones(1, 1), torch.tensor([-1])
    cache = torch.zeros(1, 4, 2)
    with pytest.raises(ValueError, match="unknown RoPE layout 'neox': interleaved or half"):
        rope(x, one, one, "neox")
    with pytest.raises(ValueError, match="unknown RoPE layout 'neox': interleaved or half"):
        indexer_query(x[None], one, one, one, "neox", 1.0)
    with pytest.raises(ValueError, match="unknown RoPE layout 'neox': interleaved or half"):
        indexer_key_store(x, x[0], x[0], 1e-6, one, one, "neox", cache, nowhere)


def test_query_rotates_the_front_and_folds_the_scales():
    q, w = randn(5, 3, 12, seed=1), randn(5, 3, seed=2)
    cos, sin, _ = angles(5, 4)
    got, weights = indexer_query(q, w, cos, sin, "half", 0.25)
    torch.testing.assert_close(got[..., 8:], q[..., 8:], rtol=0, atol=0)
    torch.testing.assert_close(got[:, 1, :8], rope(q[:, 1, :8], cos, sin, "half"))
    torch.testing.assert_close(weights, w * 0.25 * 3**-0.5)


def test_key_is_normed_rotated_and_stored_in_its_slot():
    k, weight, bias = randn(5, 12, seed=2), randn(12, seed=3), randn(12, seed=4)
    cos, sin, _ = angles(5, 4)
    cache = torch.full((3, 4, 12), float("nan"))
    slots = torch.tensor([11, 0, 5, 6, 2])
    indexer_key_store(k, weight, bias, 1e-6, cos, sin, "interleaved", cache, slots)
    normed = F.layer_norm(k, (12,), weight, bias, 1e-6)
    want = torch.cat((rope(normed[:, :8], cos, sin, "interleaved"), normed[:, 8:]), -1)
    torch.testing.assert_close(cache.view(12, 12)[slots], want)
    assert cache.view(12, 12).isnan().any(-1).sum() == 7
