import numpy as np
import pytest
from scipy.stats import t as student

from ixsearch.verdict.bootstrap import (
    FEWEST_DOCUMENTS,
    divergence_interval,
    loss_interval,
    ratio_interval,
    relative_loss_interval,
)
from ixsearch.verdict.paired import Paired, PairedDocument

from .pairs import by_loss, document

RNG = np.random.default_rng(5)
TOKENS = RNG.integers(80, 240, 30).astype(float)
SUMS = TOKENS * RNG.lognormal(-3, 0.6, 30)


def test_the_estimate_is_the_ratio_of_sums():
    found = ratio_interval(SUMS, TOKENS)
    assert found.estimate == pytest.approx(SUMS.sum() / TOKENS.sum())
    assert found.low < found.estimate < found.high and found.confidence == 0.95


def test_is_the_t_interval_where_all_is_normal():
    values = np.random.default_rng(1).normal(3, 1, 400)
    found = ratio_interval(values, np.ones(400), resamples=20_000)
    reach = student.ppf(0.975, 399) * values.std(ddof=1) / 20
    assert found.low == pytest.approx(values.mean() - reach, abs=0.01)
    assert found.high == pytest.approx(values.mean() + reach, abs=0.01)


def test_reaches_further_up_where_the_tail_is_up():
    found = ratio_interval(SUMS**2, TOKENS)
    assert found.high - found.estimate > 1.3 * (found.estimate - found.low)


def test_the_seed_decides():
    assert ratio_interval(SUMS, TOKENS, seed=3) == ratio_interval(SUMS, TOKENS, seed=3)
    assert ratio_interval(SUMS, TOKENS, seed=3) != ratio_interval(SUMS, TOKENS, seed=4)


def test_the_unit_does_not_matter():
    one, other = ratio_interval(SUMS, TOKENS), ratio_interval(-1000 * SUMS, TOKENS)
    assert other.estimate == pytest.approx(-1000 * one.estimate)
    wide = ratio_interval(1000 * SUMS, TOKENS)
    assert (wide.low, wide.high) == pytest.approx((1000 * one.low, 1000 * one.high))


def test_more_confidence_is_wider_and_more_documents_narrower():
    usual, sure = ratio_interval(SUMS, TOKENS), ratio_interval(SUMS, TOKENS, 0.99)
    assert sure.low < usual.low and usual.high < sure.high
    many = ratio_interval(np.tile(SUMS, 4), np.tile(TOKENS, 4))
    assert many.high - many.low < 0.7 * (usual.high - usual.low)


def test_few_documents_have_none():
    few = FEWEST_DOCUMENTS - 1
    assert ratio_interval(SUMS[:few], TOKENS[:few]) is None
    assert ratio_interval(SUMS[: few + 1], TOKENS[: few + 1]) is not None


@pytest.mark.filterwarnings("error")
def test_documents_that_score_nothing_change_nothing():
    """As held-out texts may that end before index_topk."""
    nothing = np.zeros(40)
    found = ratio_interval(np.append(SUMS, nothing), np.append(TOKENS, nothing))
    assert found == ratio_interval(SUMS, TOKENS)
    few = FEWEST_DOCUMENTS - 1
    assert ratio_interval(np.append(SUMS[:few], nothing), np.append(TOKENS[:few], nothing)) is None
    assert ratio_interval(nothing, nothing) is None


@pytest.mark.filterwarnings("error")
def test_documents_without_a_denominator_may_be_drawn_alone():
    """Documents that all-F predicts perfectly, say, and the pattern does not."""
    extra, reference = np.ones(60), np.zeros(60)
    reference[:5] = (7.0, 5.0, 8.0, 6.0, 4.0)
    found = ratio_interval(extra, reference)
    assert found.estimate == 2 and found.low <= 2 <= found.high
    assert not np.isnan(found.low) and not np.isnan(found.high)
    assert ratio_interval(extra, np.where(reference == 4, 0, reference)) is None


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_is_not_finite_has_none(broken):
    assert ratio_interval(np.where(np.arange(30) == 7, broken, SUMS), TOKENS) is None


def test_no_spread_is_a_point():
    found = ratio_interval(2 * TOKENS, TOKENS)
    assert (found.low, found.estimate, found.high) == (2, 2, 2)


def test_one_document_that_differs_has_no_upper_end():
    sums = np.zeros(8)
    sums[3] = 1.0
    found = ratio_interval(sums, np.full(8, 100.0))
    assert found.high == np.inf and found.low <= found.estimate


def test_divergence_is_the_candidates_and_never_negative():
    pairs = Paired(tuple(document(divergence=d) for d in (0.001, 0.001, 0.002, 0.001, 5, 0.002)))
    found = divergence_interval(pairs)
    assert found.estimate == pytest.approx(5.007 / 600) and 0 <= found.low < found.estimate


def test_two_patterns_differ_by_the_difference_of_their_divergences():
    rows = [(1.0, 0.4), (2.0, 1.1), (0.5, 0.3), (1.2, 0.2), (0.9, 1.0), (3.0, 1.5)]
    pairs = Paired(tuple(PairedDocument(100, 1.0, 1.0, a, b, (), ()) for a, b in rows))
    found = divergence_interval(pairs)
    assert found.estimate == pytest.approx((4.5 - 8.6) / 600) and found.low < found.estimate < 0


def test_pairing_removes_what_is_common_to_both():
    """Documents of very unequal loss, each 1 % worse: the difference is known well."""
    rows = [(loss, 1.01 * loss) for loss in (10.0, 200.0, 45.0, 90.0, 400.0, 20.0)]
    pairs = Paired(tuple(PairedDocument(100, a, b, 0.0, 0.1, (), ()) for a, b in rows))
    relative = relative_loss_interval(pairs)
    assert (relative.low, relative.high) == pytest.approx((0.01, 0.01))
    assert loss_interval(pairs).estimate == pytest.approx(7.65 / 600)


def test_loss_may_fall():
    found = loss_interval(by_loss([-2.0, -1.5, -2.5, -2.2, -1.8, -2.1]))
    assert found.high < 0
