import pytest

from ixsearch.runtime.interface import Document, DocumentScore
from ixsearch.verdict.paired import pair, pair_answers, visible_answers

REFERENCE = [
    DocumentScore(10, 5.0, 0.0, (True, True, False)),
    DocumentScore(20, 8.0, 0.0, (True, False)),
]
CANDIDATE = [
    DocumentScore(10, 5.5, 0.2, (True, False, True)),
    DocumentScore(20, 7.5, 0.1, (False, False)),
]


def test_pairs_documents_and_questions():
    found = pair(REFERENCE, CANDIDATE)
    assert (found.questions, found.losses, found.gains) == (5, 2, 1)
    assert (found.reference_right, found.candidate_right) == (3, 2)
    assert found.column("tokens").tolist() == [10, 20]
    assert found.column("candidate_loss").tolist() == [5.5, 7.5]
    assert found.column("candidate_divergence").tolist() == [0.2, 0.1]
    assert found.column("losses").tolist() == [1, 1]


def test_leaves_out_questions_that_no_pattern_can_change():
    found = pair(REFERENCE, CANDIDATE, visible=[(True, False, True), (True, True)])
    assert (found.questions, found.losses, found.gains) == (4, 1, 1)


def test_an_answer_is_visible_when_a_token_of_it_is_scored():
    answers = ((2, 4), (3, 6), (5, 6), (6, 7), (4, 9))
    document = Document("d", tuple(range(10)), answers)
    seen = visible_answers(document, index_topk=5)
    assert seen == (False, False, False, True, True)
    scored = set(document.scored_targets(5))
    assert seen == tuple(bool(scored & set(range(a, b))) for a, b in answers)


@pytest.mark.parametrize(
    "candidate",
    [
        CANDIDATE[:1],
        [DocumentScore(11, 5.5, 0.2, (True, False, True)), CANDIDATE[1]],
        [DocumentScore(10, 5.5, 0.2, (True, False)), CANDIDATE[1]],
    ],
    ids=["fewer documents", "other tokens", "fewer questions"],
)
def test_scores_of_other_documents_do_not_pair(candidate):
    with pytest.raises(ValueError):
        pair(REFERENCE, candidate)


def test_pairs_answers_alone():
    one, other = [True, True, False, True, False], [True, False, True, False, False]
    found = pair_answers(one, other)
    assert (found.questions, len(found.documents), found.losses, found.gains) == (5, 5, 2, 1)
    grouped = pair_answers(one, other, sizes=[2, 3])
    assert [d.losses for d in grouped.documents] == [1, 1]
    assert [d.questions for d in grouped.documents] == [2, 3]
    assert pair_answers([], []).questions == 0
    for bad in ([2, 2], [3, 3], [1]):
        with pytest.raises(ValueError):
            pair_answers(one, other, sizes=bad)
    with pytest.raises(ValueError):
        pair_answers(one, other[1:])
