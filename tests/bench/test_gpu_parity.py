"""What the report of the GPU against the CPU counts, on inputs of which the answer is known."""

import io
from math import log
from types import SimpleNamespace

import pytest
import torch
from parity import gate, published, tables, turns
from parity.backends import counted_kernels
from parity.decode import DecodeSteps
from parity.distance import distance, kl_divergence, selection_shares
from parity.findings import wrong
from parity.forward import forward
from parity.gate import selection_shares_by_rows
from parity.near_ties import Unequal, agreement, first_unequal, gap, tolerance_of
from parity.ranking import ranking
from parity.sample import ALL_FULL, EIGHT, FULL, QUICK
from parity.settings import EXACT, pairs_of, settings_of
from parity.turns import KERNELS, TWINS
from rich.console import Console

from ixsearch.kernels import dispatch
from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, Request


def logs(*rows):
    return torch.tensor(rows, dtype=torch.float64).log()


def test_kl_is_what_one_computes_by_hand():
    want, got = logs([0.5, 0.5], [0.25, 0.75]), logs([0.25, 0.75], [0.25, 0.75]) + 3.0
    by_hand = 0.5 * log(0.5 / 0.25) + 0.5 * log(0.5 / 0.75)
    assert kl_divergence(want, got).tolist() == pytest.approx([by_hand, 0.0], abs=1e-12)


def test_a_selection_is_a_set():
    want = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, -1, -1], [-1, -1, -1, -1]])
    got = torch.tensor([[4, 3, 2, 1], [1, 2, 3, 9], [1, 2, 5, 6], [-1, -1, -1, -1]])
    assert selection_shares(got, want).tolist() == [1.0, 0.75, 0.5, 1.0]
    assert torch.equal(selection_shares_by_rows(got, want), selection_shares(got, want))


def test_the_distance_of_two_documents():
    """One row of three differs, in the second document, and is the scored one there."""
    same, other = logs([0.5, 0.5]), logs([0.25, 0.75])
    chosen = [torch.tensor([[[0, 1]]]), torch.tensor([[[0, 1], [1, 2]]])]
    moved = [chosen[0], torch.tensor([[[0, 1], [1, 3]]])]
    documents = [same, torch.cat((same, same))], [same, torch.cat((same, other))]
    found = distance(documents[1], documents[0], moved, chosen, [[], [1]])
    apart = 0.5 * log(2) + 0.5 * log(2 / 3)
    assert found.rows == 3 and found.kl == pytest.approx(apart / 3)
    assert found.kl_scored == found.kl_largest == pytest.approx(apart)
    assert found.logit_difference == pytest.approx(log(2)) and found.logit_median == 0
    assert found.logit_largest == pytest.approx(log(2))
    assert found.logit_usual == pytest.approx(0.98 * log(2))
    assert found.same_sets == pytest.approx(2 / 3) and found.common == pytest.approx(2.5 / 3)


def test_of_nan_nothing_is_said():
    bad, chosen = [torch.tensor([[0.0, float("nan")]])], [torch.zeros(1, 1, 1)]
    with pytest.raises(ValueError, match="NaN"):
        distance(bad, [torch.zeros(1, 2)], chosen, chosen, [[0]])


def test_only_the_first_unequal_token_counts():
    assert first_unequal([(1, 2, 3), (4, 5, 6), (7, 8, 9)], [(1, 2, 3), (4, 0, 0), (0, 8, 9)]) == [
        Unequal(1, 1, 5, 0),
        Unequal(2, 0, 7, 0),
    ]
    with pytest.raises(ValueError):
        first_unequal([(1, 2)], [(1,)])


def test_a_gap_reaches_from_the_best_token_to_the_worse_of_the_two():
    logits = torch.tensor([5.0, 4.75, 1.0, 4.5])
    assert gap(logits, Unequal(0, 0, 0, 1)) == 0.25
    assert gap(logits, Unequal(0, 0, 1, 3)) == 0.5
    assert gap(logits, Unequal(0, 0, 2, 0)) == 4.0


def judged(logits, tolerance):
    """Three prompts; the second differs at its third token, the others nowhere."""
    asked = []

    def logits_after(tokens):
        asked.append(list(tokens))
        return torch.tensor(logits)

    wanted, got = [(1, 1), (0, 2, 0), (2,)], [(1, 1), (0, 2, 1), (2,)]
    found = agreement([(7,), (8, 9), (7,)], wanted, got, tolerance, logits_after)
    assert asked == [[8, 9, 0, 2]]
    return found


@pytest.mark.parametrize(
    ("logits", "near"),
    [((3.0, 2.99, 0.0), True), ((3.0, 2.0, 0.0), False), ((3.0, float("nan"), 0.0), False)],
)
def test_unequal_tokens_are_near_ties_or_not(logits, near):
    found = judged(logits, tolerance_of(0.01))
    assert (found.prompts, found.equal_prompts) == (3, 2)
    assert (found.tokens, found.equal_tokens) == (6, 5)
    assert found.near_ties == near
    assert found.others == (() if near else (Unequal(1, 2, 0, 1),))


def test_logits_that_are_off_by_d_can_swap_two_that_are_2d_apart_and_no_more():
    """Against brute force: the best token after any change of up to d lies within the tolerance."""
    generator, d = torch.Generator().manual_seed(0), 0.3
    logits = torch.randn(200, 12, generator=generator)
    noise = (torch.rand(200, 12, generator=generator) * 2 - 1) * d
    moved = (logits + noise).argmax(-1)
    gaps = [
        gap(row, Unequal(0, 0, int(row.argmax()), int(other)))
        for row, other in zip(logits, moved, strict=True)
    ]
    assert 0 < max(gaps) <= tolerance_of(d)
    assert sum(width > 0 for width in gaps) > 10


def test_patterns_change_places():
    want = {"FFF": 0.1, "FFS": 0.2, "FSF": 0.21, "FSS": 0.5}
    got = {"FFF": 0.1, "FFS": 0.22, "FSF": 0.21, "FSS": 0.6}
    found = ranking(want, got)
    assert (found.patterns, found.pairs, found.swapped) == (4, 6, 1)
    assert not found.same_order and not found.same_best
    assert found.widest_swap == pytest.approx(0.01 / 0.21)
    assert found.largest_change == pytest.approx(0.2)
    assert ranking(want, dict(reversed(want.items()))).same_order
    with pytest.raises(ValueError):
        ranking(want, {"FFF": 0.1})


def test_turns_go_forth_and_back_and_end_when_the_time_is_over():
    ran = []
    names = ((KERNELS, "FF"), (TWINS, "FF"))
    contenders = {key: lambda key=key: ran.append(key[0]) or {"a": 1.0} for key in names}
    assert len(turns.in_turns(contenders, 2, float("inf"), warm=names[:1])) == 2
    assert ran == [KERNELS, KERNELS, TWINS, TWINS, KERNELS]
    assert len(turns.in_turns(contenders, 5, 0.0, warm=())) == 1


def test_ratios_are_of_one_round():
    rounds = [
        {(KERNELS, "FF"): {"a": k}, (TWINS, "FF"): {"a": t}, (KERNELS, "FS"): {"a": s}}
        | {(TWINS, "FS"): {"a": t}}
        for k, t, s in ((1.0, 4.0, 0.5), (2.0, 4.0, 2.0), (4.0, 4.0, 1.0))
    ]
    full, shared = turns.rows_of(rounds, {"model": "m"})
    assert full["kernels_s"] == 2.0 and full["kernels_s_spread"] == [1.0, 4.0]
    assert full["faster"] == 2.0 and full["faster_spread"] == [1.0, 4.0] and "gain" not in full
    assert shared["gain"] == 2.0 and shared["gain_spread"] == [1.0, 4.0]
    assert shared["rounds"] == 3 and shared["pattern"] == "FS"


PAIRS = pairs_of("cpu")[:1]


def report(**changes):
    row = {"pair": PAIRS[0].name, "pattern": ALL_FULL}
    found = {"kl": 1e-9} | {k: v for k, v in changes.items() if k == "kl"}
    greedy = {"others": [], "tolerance_share": 2e-5}
    greedy |= {k: v for k, v in changes.items() if k in greedy}
    search = [{"backend": KERNELS, "dtype": "float32", "kernel_calls": {"topk_indices": 1}}]
    known = {"failed": {}, "dry_run": False, "search": search}
    known |= {"distance": [row | found], "greedy": [row | greedy]}
    return known | {k: v for k, v in changes.items() if k in known}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kl": 1e-3}, "KL"),
        ({"kl": float("nan")}, "KL"),
        ({"others": [{}]}, "1 unequal not at a near-tie"),
        ({"tolerance_share": 0.1}, "wide"),
        ({"failed": {"search": "RuntimeError"}}, "search: RuntimeError"),
        ({"greedy": []}, "not compared"),
        ({"search": [{"backend": KERNELS, "dtype": "a", "kernel_calls": {}}]}, "no kernel ran"),
    ],
)
def test_what_is_wrong(changes, said):
    assert wrong(report(), PAIRS) == []
    (found,) = wrong(report(**changes), PAIRS)
    assert said in found


def test_tokens_of_fewer_bits_are_only_counted():
    half = pairs_of("cpu")[1]
    assert half.setting.dtype == "bfloat16"
    row = {"pair": half.name, "pattern": ALL_FULL, "others": [{}], "tolerance_share": 0.1}
    assert wrong(report(greedy=[*report()["greedy"], row]), [*PAIRS, half]) == []


def test_on_cuda_device_and_kernels_are_told_apart():
    pairs = pairs_of("cuda")
    assert len({pair.name for pair in pairs}) == len(pairs) == 8
    assert [p.judge.device for p in pairs] == ["cpu"] * 8
    exact = [(p.setting.backend, p.reference.device) for p in pairs if p.exact]
    assert exact == [("triton", "cpu"), ("torch", "cpu"), ("triton", "cuda")]
    assert settings_of("cuda")[0] == EXACT


def test_the_samples_patterns_are_legal_and_distinct():
    patterns = FULL.patterns()
    assert len(set(patterns)) == FULL.ranked and Pattern(ALL_FULL) not in patterns
    assert {len(pattern) for pattern in patterns} == {16}
    assert Pattern(EIGHT) in QUICK.patterns()


@pytest.fixture(scope="module")
def engine():
    return published.random_engine("cpu", torch.float32, "float", small=True)


def tokens_for(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(2048, (count,), generator=generator).tolist())


def test_the_divergence_is_that_of_the_engine(engine):
    """Of a pattern and all-F of one model, the scored rows give what `score` gives."""
    document = Document("a", tokens_for(200), ((150, 170),))
    topk = engine.describe().index_topk
    (score,), (own,) = engine.score([document], [published.SHARED, published.FULL])
    rows = {
        p: forward(engine.model, p, document.tokens) for p in (published.SHARED, published.FULL)
    }
    logits = {p: [found[topk:-1]] for p, (found, _) in rows.items()}
    chosen = [rows[published.SHARED][1][:1, topk:-1]]
    scored = [[t - 1 - topk for t in document.scored_targets(topk)]]
    found = distance(logits[published.SHARED], logits[published.FULL], chosen, chosen, scored)
    assert score.tokens == 20 and own.divergence_sum == 0
    assert found.kl_scored == pytest.approx(score.divergence_sum / score.tokens, rel=1e-4)


def test_a_perturbed_model_is_as_far_off_as_it_was_perturbed(engine):
    """Noise on the head alone: selections stay, logits move by it, best tokens only at ties."""
    tokens = tokens_for(180)
    want, chosen = forward(engine.model, published.FULL, tokens)
    head = engine.model.top.head
    noise = torch.randn(head.shape, generator=torch.Generator().manual_seed(1)) * 1e-4
    head += noise
    try:
        got, moved = forward(engine.model, published.FULL, tokens)
    finally:
        head -= noise
    found = distance([got], [want], [moved], [chosen], [range(len(want))])
    assert found.same_sets == 1 and 0 < found.kl < 1e-5
    assert 1e-4 < found.logit_difference < 0.05
    pairs = zip(want, want.argmax(-1), got.argmax(-1), strict=True)
    widest = max(gap(row, Unequal(0, 0, int(a), int(b))) for row, a, b in pairs)
    assert widest <= tolerance_of(found.logit_difference)


@pytest.fixture(scope="module")
def rounded():
    return published.random_engine("cpu", torch.bfloat16, "float", small=True)


def through_faulty_kernels(monkeypatch, fault):
    real = gate.forward_through

    def forward_through(engine, pattern, tokens, backend):
        found = real(engine, pattern, tokens, backend)
        return fault(*found) if backend == KERNELS else found

    monkeypatch.setattr(gate, "forward_through", forward_through)


def test_the_gate_tells_rounding_from_a_fault(monkeypatch, engine, rounded):
    """bfloat16 passes, as far off as it is; a tenth more on a tenth of the logits does not."""
    assert "FSSS: common indices 1.0000" in gate.checked(rounded, engine, 180)

    def fault(logits, chosen):
        return torch.cat((logits[:, :205] * 1.1, logits[:, 205:]), -1), chosen

    through_faulty_kernels(monkeypatch, fault)
    with pytest.raises(gate.Mismatch, match="logits off float32"):
        gate.checked(rounded, engine, 180)


def test_the_gate_sees_a_fault_of_fewer_than_half_the_rows(monkeypatch, engine, rounded):
    """Of which the median says nothing: here of those longer than the top-k alone, 52 of 180."""
    topk = engine.describe().index_topk

    def fault(logits, chosen):
        return torch.cat((logits[:topk], logits[topk:].flip(-1))), chosen

    through_faulty_kernels(monkeypatch, fault)
    with pytest.raises(gate.Mismatch, match="rows off more than 2 times"):
        gate.checked(rounded, engine, 180)


def test_the_gate_sees_a_single_row_that_selects_nothing(monkeypatch, engine, rounded):
    def fault(logits, chosen):
        chosen = chosen.clone()
        chosen[0, 150] = -1
        return logits, chosen

    through_faulty_kernels(monkeypatch, fault)
    with pytest.raises(gate.Mismatch, match=r"at least 0\.0000 of a row"):
        gate.checked(rounded, engine, 180)


def test_another_head_is_not_a_near_tie(engine):
    """Two rows of the head exchanged: what was the one token is now the other."""
    prompt = tokens_for(140)
    engine.set_pattern(published.FULL)
    (wanted,) = engine.generate([Request(prompt, 4)])
    head, first = engine.model.top.head, wanted[0]
    other = (first + 1) % len(head)
    head[[first, other]] = head[[other, first]]
    try:
        (got,) = engine.generate([Request(prompt, 4)])
    finally:
        head[[first, other]] = head[[other, first]]

    def logits_after(tokens):
        return forward(engine.model, published.FULL, tokens)[0][-1]

    found = agreement([prompt], [wanted], [got], 1e-3, logits_after)
    assert found.others == (Unequal(0, 0, first, other),) and found.largest_gap > 1e-3


@pytest.mark.parametrize("cache", ["float", "fp8"])
def test_a_decode_step_is_the_next_row_of_a_forward(cache):
    """Of every request, whose pages are copies: against one prefill of the same tokens."""
    engine = published.random_engine("cpu", torch.float32, cache, small=True)
    for pattern in (published.FULL, published.SHARED):
        steps = DecodeSteps(engine.model, pattern, context=140, requests=2)
        draw = torch.Generator().manual_seed(0)
        tokens = torch.randint(2048, (142,), generator=draw).tolist()
        with torch.inference_mode():
            hidden = engine.model.forward(steps.tokens, steps.cache, steps.step)
            got = engine.model.logits(hidden)
        for i in range(2):
            want = forward(engine.model, pattern, [*tokens[:140], tokens[140 + i]])[0][-1]
            assert (got[i] - want).norm() <= 1e-3 * want.norm()
        assert steps.seconds(1) > 0


def test_kernels_are_counted_and_then_no_more():
    before = dispatch._kernel
    with counted_kernels() as calls:
        dispatch._kernel("topk", "topk_indices")
        dispatch._kernel("topk", "topk_indices")
    assert calls == {"topk_indices": 2} and dispatch._kernel is before


def test_the_tables_name_what_is_not_equal():
    row = {"pair": "a : b", "pattern": "FS", "equal_prompts": 2, "prompts": 3, "equal_tokens": 8}
    row |= {"tokens": 9, "near_ties": 0, "others": [{}], "largest_gap": 1.5, "tolerance": 0.25}
    console = Console(width=200, file=io.StringIO())
    console.print(tables.greedy([row]))
    line = console.file.getvalue().splitlines()[-1]
    assert "2 of 3" in line and "8 of 9" in line and "1.5e+00" in line and "2.5e-01" in line


def test_without_a_device_it_says_so(monkeypatch):
    import gpu_parity

    monkeypatch.setattr(gpu_parity.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu_parity, "parse_args", lambda: SimpleNamespace(device="cuda"))
    with pytest.raises(SystemExit, match="sees none"):
        gpu_parity.main()
