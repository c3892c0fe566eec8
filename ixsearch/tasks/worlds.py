"""Little worlds of prices and wishes, and word problems about them, from a seed.

A document states about a hundred facts in random order, then asks problems until it is full:

    Facts: A black kettle costs 5. Anna wants white bells. Dora knows Alma. Alma has 78. ...
    Question: Gina buys 3 shiny oars and 5 of what Ruth's friend wants. How much money is missing?
    Answer: A shiny oar costs 17. 3 * 17 = 51. Ruth knows Sam. Sam wants tiny kettles. A tiny kettle
    costs 8. 5 * 8 = 40. 51 + 40 = 91. Gina has 26. 91 - 26 = 65. #### 65

An answer can only be found by looking facts up anywhere in the list, so it depends on which
positions the attention selects. The solution, one line, spells every look-up and every step of
the arithmetic; the newline ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ixsearch.tasks.words import ADJECTIVES, NAMES, NOUNS, split

NUM_ITEMS = 48
NUM_PEOPLE = 24
DOCUMENT_TOKENS = 1024
"""The length the bundled model is trained on."""
LONGEST_SOLUTION = 104
"""Tokens, with some to spare."""

ITEMS = tuple(f"{adjective} {noun}" for adjective in ADJECTIVES for noun in NOUNS)


@dataclass(frozen=True)
class Problem:
    """A question that ends in `Answer:`, and the solution, which ends in `#### N`."""

    question: str
    solution: str


@dataclass(frozen=True)
class WordDocument:
    """Facts, in one line, and worked problems about them."""

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
    """Tokens of a text of this language."""
    return len(split(text))


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
    def draw(cls, rng: Random, items: int = NUM_ITEMS, people: int = NUM_PEOPLE) -> World:
        return cls(
            items=tuple(rng.sample(ITEMS, items)),
            prices=tuple(rng.choices(range(2, 20), k=items)),
            people=tuple(rng.sample(NAMES, people)),
            wants=tuple(rng.choices(range(items), k=people)),
            knows=tuple((i + rng.randrange(1, people)) % people for i in range(people)),
            purses=tuple(rng.choices(range(10, 151), k=people)),
        )

    def costs(self, item: int) -> str:
        return f" A {self.items[item]} costs {self.prices[item]}."

    def wish(self, person: int) -> str:
        return f" {self.people[person]} wants {self.items[self.wants[person]]}s."

    def friendship(self, person: int) -> str:
        return f" {self.people[person]} knows {self.people[self.knows[person]]}."

    def purse(self, person: int) -> str:
        return f" {self.people[person]} has {self.purses[person]}."

    def facts(self) -> list[str]:
        """Every fact once, as a sentence with the space before it."""
        facts = [self.costs(item) for item in range(len(self.items))]
        for person in range(len(self.people)):
            facts += [self.wish(person), self.friendship(person), self.purse(person)]
        return facts


def facts_text(facts: Sequence[str]) -> str:
    """The facts as a document states them, in one line."""
    return f"Facts:{''.join(facts)}\n"


def draw_document(rng: Random, max_tokens: int = DOCUMENT_TOKENS) -> WordDocument:
    """A world and as many problems as fit in `max_tokens`, the `<bos>` token counted."""
    world = World.draw(rng)
    facts = world.facts()
    rng.shuffle(facts)
    text = facts_text(facts)
    used = 1 + count_tokens(text)
    problems: list[Problem] = []
    while True:
        problem = draw_problem(rng, world)
        used += count_tokens(problem.question) + count_tokens(f" {problem.solution}\n")
        if used > max_tokens:
            return WordDocument(text, tuple(problems))
        problems.append(problem)


def draw_problem(rng: Random, world: World) -> Problem:
    """One or two purchases, perhaps a coupon, then the sum to pay or the money left or missing."""
    buyer = rng.randrange(len(world.people))
    name = world.people[buyer]
    goods, steps, amounts = [], [], []
    for _ in range(1 if rng.random() < 0.4 else 2):
        item, wording, look_ups = draw_reference(rng, world)
        count, price = rng.randint(2, 6), world.prices[item]
        goods.append(
            f"{count} {world.items[item]}s" if wording is None else f"{count} of {wording}"
        )
        steps += [*look_ups, f" {count} * {price} = {count * price}."]
        amounts.append(count * price)
    total = sum(amounts)
    if len(amounts) == 2:
        steps.append(f" {amounts[0]} + {amounts[1]} = {total}.")
    question = f"Question: {name} buys {' and '.join(goods)}."
    if rng.random() < 0.2 and total > 4:
        coupon = rng.randint(2, min(9, total - 1))
        question += f" A coupon takes {coupon} off."
        steps.append(f" {total} - {coupon} = {total - coupon}.")
        total -= coupon
    if rng.random() < 0.5:
        question += f" How much does {name} pay?"
    else:
        money = world.purses[buyer]
        question += f" How much money is {'left' if money >= total else 'missing'}?"
        more, less = max(money, total), min(money, total)
        steps += [world.purse(buyer), f" {more} - {less} = {more - less}."]
        total = more - less
    return Problem(f"{question}\nAnswer:", f"{''.join(steps)} #### {total}"[1:])


def draw_price_question(rng: Random, world: World) -> Problem:
    """What one thing costs: the look-ups alone."""
    item, wording, look_ups = draw_reference(rng, world)
    question = f"Question: How much does {wording or f'a {world.items[item]}'} cost?\nAnswer:"
    return Problem(question, f"{''.join(look_ups)} #### {world.prices[item]}"[1:])


def draw_reference(rng: Random, world: World) -> tuple[int, str | None, list[str]]:
    """An item, how it is paraphrased by a person (None: it is named), the facts it rests on."""
    hops = rng.randint(1, 3)
    if hops == 1:
        item = rng.randrange(len(world.items))
        return item, None, [world.costs(item)]
    person = rng.randrange(len(world.people))
    if hops == 2:
        item = world.wants[person]
        return item, f"what {world.people[person]} wants", [world.wish(person), world.costs(item)]
    friend = world.knows[person]
    item = world.wants[friend]
    wording = f"what {world.people[person]}'s friend wants"
    return item, wording, [world.friendship(person), world.wish(friend), world.costs(item)]
