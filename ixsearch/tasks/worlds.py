"""Little worlds of prices and wishes, and word problems about them, from a seed.

A document states about a hundred facts in random order, then asks problems until it is full:

    black kettle costs 5
    Anna wants white bell
    Dora knows Ella
    Ella has 78
    ...
    Q : Anna buys 3 of what the friend of Dora wants . How much does Anna pay ? Show : Dora knows
    Ella , Ella wants black kettle , black kettle costs 5 , 3 * 5 = 15 #### 15

An answer can only be found by looking facts up anywhere in the list, so it depends on which
positions the attention selects. The solution spells every look-up and every step of the arithmetic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from ixsearch.tasks.words import ADJECTIVES, NAMES, NOUNS

NUM_ITEMS = 40
NUM_PEOPLE = 18
DOCUMENT_TOKENS = 768
"""The length the bundled model was trained on."""
LONGEST_SOLUTION = 92
"""Tokens."""


@dataclass(frozen=True)
class Problem:
    """A question that ends in `Show :`, and the solution, one line, that ends in `#### N`."""

    question: str
    solution: str


@dataclass(frozen=True)
class WordDocument:
    """Facts, one a line, and worked problems about them."""

    facts: str
    problems: tuple[Problem, ...]

    def segments(self) -> list[tuple[str, bool]]:
        """The text in pieces, each marked: is it a solution (what a model should answer)?"""
        pieces = [(self.facts, False)]
        for problem in self.problems:
            pieces += [(problem.question, False), (f" {problem.solution}\n", True)]
        return pieces

    @property
    def text(self) -> str:
        return "".join(piece for piece, _ in self.segments())

    def prompt(self, number: int) -> str:
        """All that stands before the solution of a problem, earlier solutions included."""
        return "".join(piece for piece, _ in self.segments()[: 2 * number + 2])


def count_tokens(text: str) -> int:
    """Tokens of a text of this language: words, single digits and newlines."""
    return len(re.findall(r"\n|\d|[^\s\d]+", text))


@dataclass(frozen=True)
class World:
    """What things cost, and what people want, whom they know and what they have."""

    items: tuple[str, ...]
    prices: tuple[int, ...]
    people: tuple[str, ...]
    wants: tuple[int, ...]
    """The item a person wants."""
    knows: tuple[int, ...]
    """The one friend of a person, never the person."""
    purses: tuple[int, ...]

    @classmethod
    def draw(cls, rng: Random) -> World:
        pairs = [f"{adjective} {noun}" for adjective in ADJECTIVES for noun in NOUNS]
        people = range(NUM_PEOPLE)
        return cls(
            items=tuple(rng.sample(pairs, NUM_ITEMS)),
            prices=tuple(rng.randint(2, 19) for _ in range(NUM_ITEMS)),
            people=tuple(rng.sample(NAMES, NUM_PEOPLE)),
            wants=tuple(rng.randrange(NUM_ITEMS) for _ in people),
            knows=tuple((i + rng.randrange(1, NUM_PEOPLE)) % NUM_PEOPLE for i in people),
            purses=tuple(rng.randint(10, 150) for _ in people),
        )

    def costs(self, item: int) -> str:
        return f"{self.items[item]} costs {self.prices[item]}"

    def wish(self, person: int) -> str:
        return f"{self.people[person]} wants {self.items[self.wants[person]]}"

    def friendship(self, person: int) -> str:
        return f"{self.people[person]} knows {self.people[self.knows[person]]}"

    def purse(self, person: int) -> str:
        return f"{self.people[person]} has {self.purses[person]}"

    def facts(self) -> list[str]:
        """Every fact once, person by person."""
        facts = [self.costs(item) for item in range(len(self.items))]
        for person in range(len(self.people)):
            facts += [self.wish(person), self.friendship(person), self.purse(person)]
        return facts


def facts_text(facts: list[str]) -> str:
    """The facts as a document states them, one a line."""
    return "".join(f"{fact}\n" for fact in facts)


def draw_document(rng: Random, max_tokens: int = DOCUMENT_TOKENS) -> WordDocument:
    """A world and as many problems as fit in `max_tokens`, the `<bos>` token counted."""
    world = World.draw(rng)
    facts = world.facts()
    rng.shuffle(facts)
    document = WordDocument(facts_text(facts), ())
    used = 1 + count_tokens(document.text)
    problems: list[Problem] = []
    while True:
        problem = draw_problem(rng, world)
        used += count_tokens(problem.question) + count_tokens(f"{problem.solution}\n")
        if used > max_tokens:
            return WordDocument(document.facts, tuple(problems))
        problems.append(problem)


def draw_problem(rng: Random, world: World) -> Problem:
    """One or two purchases, perhaps a coupon, then the sum to pay or the money left or missing."""
    buyer = rng.randrange(len(world.people))
    name = world.people[buyer]
    goods, steps, amounts = [], [], []
    for _ in range(1 if rng.random() < 0.4 else 2):
        item, wording, look_ups = _draw_reference(rng, world)
        count, price = rng.randint(2, 6), world.prices[item]
        goods.append(f"{count} {wording}")
        steps += [*look_ups, f"{count} * {price} = {count * price}"]
        amounts.append(count * price)
    total = sum(amounts)
    if len(amounts) == 2:
        steps.append(f"{amounts[0]} + {amounts[1]} = {total}")
    question = f"Q : {name} buys {' and '.join(goods)}"
    if rng.random() < 0.2 and total > 4:
        coupon = rng.randint(2, min(9, total - 1))
        question += f" . the coupon takes {coupon} off"
        steps.append(f"{total} - {coupon} = {total - coupon}")
        total -= coupon
    if rng.random() < 0.5:
        question += f" . How much does {name} pay ?"
    else:
        money = world.purses[buyer]
        rest = "left" if money >= total else "missing"
        question += f" . How much money is {rest} ?"
        more, less = max(money, total), min(money, total)
        steps += [world.purse(buyer), f"{more} - {less} = {more - less}"]
        total = more - less
    return Problem(f"{question} Show :", f"{' , '.join(steps)} #### {total}")


def _draw_reference(rng: Random, world: World) -> tuple[int, str, list[str]]:
    """An item, named by up to two persons: the item, the wording and the facts it rests on."""
    hops = rng.choices((1, 2, 3), (0.34, 0.33, 0.33))[0]
    if hops == 1:
        item = rng.randrange(len(world.items))
        return item, world.items[item], [world.costs(item)]
    person = rng.randrange(len(world.people))
    if hops == 2:
        item = world.wants[person]
        wording = f"of what {world.people[person]} wants"
        return item, wording, [world.wish(person), world.costs(item)]
    friend = world.knows[person]
    item = world.wants[friend]
    wording = f"of what the friend of {world.people[person]} wants"
    return item, wording, [world.friendship(person), world.wish(friend), world.costs(item)]
