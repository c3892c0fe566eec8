import pytest

from ixsearch.verdict.non_inferiority import p_value
from ixsearch.verdict.sample_size import questions_needed, questions_with


@pytest.mark.parametrize("losses, wanted", [(0, 99), (1, 157), (2, 208)])
def test_with_exactly_these_lost(losses, wanted):
    assert questions_with(losses, 0, 0.03) == wanted


def test_gains_save_questions_and_a_smaller_tolerance_costs_them():
    assert questions_with(2, 2, 0.03) < 208 < questions_with(2, 0, 0.02)


def test_none_lost_so_far():
    assert questions_needed(0, 0, 30, 0.03) == 99
    assert questions_needed(0, 0, 30, 0.03, effect=1.5) == 149


def test_rates_go_on():
    wanted = questions_needed(1, 0, 100, 0.03)
    assert 208 <= wanted <= 400
    lost = -(-wanted // 100)
    assert p_value(lost, 0, wanted, 0.03) <= 0.05


def test_a_net_gain_needs_few():
    assert questions_needed(1, 4, 60, 0.03) <= 99


@pytest.mark.parametrize("losses, gains", [(3, 0), (5, 2), (60, 1)])
def test_never_where_the_observed_loss_is_the_tolerance_or_more(losses, gains):
    assert questions_needed(losses, gains, 100, 0.03) is None


def test_more_than_anybody_asks_is_none_too():
    assert questions_needed(2999, 0, 100_000, 0.03) is None
