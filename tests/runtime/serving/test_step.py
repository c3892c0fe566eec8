"""A step's tensors against loops, and decode rows against prefill rows."""

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import BLOCK_SIZE
from ixsearch.runtime.step import Part, Step

from ..forward import full_forward, poisoned_cache
from ..test_parity import tokens_for

CPU = torch.device("cpu")


def test_a_mixed_step():
    parts = [Part([5], 9, 1), Part([7, 2, 9], 64, 2), Part([3, 1], 60, 10), Part([8, 6], 0, 3)]
    step = Step.of(parts, CPU, decode_width=2)
    rows = [(i, at) for i, part in enumerate(parts) for at in range(part.start, part.stop)]
    assert step.request_T.tolist() == [i for i, _ in rows]
    assert step.positions_T.tolist() == [at for _, at in rows]
    slots = [parts[i].table[at // BLOCK_SIZE] * BLOCK_SIZE + at % BLOCK_SIZE for i, at in rows]
    assert step.slots_T.tolist() == slots and step.rows == 16
    assert (step.decode_furthest, step.prefill_furthest, step.furthest) == (65, 69, 69)
    assert step.context_lens_B.tolist() == [10, 66, 70, 3]
    assert step.block_table_BM.tolist() == [[5, -1], [7, 2], [3, 1], [8, 6]]
    assert (step.decode_requests, step.decode_rows) == (2, 3)
    assert step.decode_table_DM.tolist() == [[5, -1], [7, 2], [7, 2]]
    assert step.prefill_table_PM.tolist() == [[3, 1], [8, 6]]
    assert step.key_start_T.tolist() == [0] * 10 + [70] * 3
    assert step.prefill_keys == 73 == int(step.prefill_lens_P.sum())


def test_prefill_and_pure_decode():
    prefill = Step.prefill([0, 1], 64, 1, CPU)
    assert (prefill.decode_rows, prefill.decode_furthest, prefill.furthest) == (0, -1, 64)
    step = Step.of([Part([0], 3, 1), Part([1], 5, 1)], CPU)
    assert step.decode_rows == step.rows == 2 and step.key_start_T.numel() == 0
    assert (step.prefill_keys, step.prefill_furthest, step.furthest) == (0, -1, 5)


@pytest.mark.parametrize("width", [0, 1, 3, 4])
@torch.inference_mode()
def test_several_decode_rows_of_one_request(engine, width):
    """As speculative decoding has them: each sees the ones before it, whatever path it takes."""
    model, pattern, tokens = engine.model, Pattern("FSFSS"), tokens_for(0, 70)
    want, _ = full_forward(model, pattern, tokens)
    cache, table = poisoned_cache(model, pattern, 70)
    for start, count, decode_width in ((0, 62, 0), (62, 4, width), (66, 4, width)):
        step = Step.of([Part(table, start, count)], CPU, decode_width)
        part = torch.tensor(tokens[start : start + count])
        got = model.logits(model.forward(part, cache, step))
        torch.testing.assert_close(got, want[start : start + count], rtol=1e-4, atol=1e-4)
