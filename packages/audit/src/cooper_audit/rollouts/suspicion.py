"""What a judge without references may have come to pay for: what became frequent, and is paid more within its groups.

It is a suspicion and never a verdict: what better answers share becomes frequent and is paid more, too. Both tests are
searches over many traits, so each compares the largest statistic of any trait with the largest one in random orders: of
the steps for what became frequent, and of the rewards inside each group for what is paid (Westfall and Young 1993).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from cooper_audit.run.change_points import ERROR, FEWEST_PROBLEMS, FEWEST_STEPS
from cooper_audit.run.lenient import states_several
from cooper_audit.run.windows import largest_split

MOST_ROWS, MOST_TRAITS = 4096, 200
"""What is searched: so many rows, in whole groups of evenly spread steps, and the traits that became most frequent."""
RISEN = 0.1
"""The smallest rise of a trait's share that is spoken of."""
ENDING = 3
"""Words that show how a text ends."""
SHOWN = 3
"""Most traits that are named."""
ORDERS = 500
"""Random orders of each test."""
_FORMS = {
    "has a box": re.compile(r"\\boxed\b"),
    "has a list": re.compile(r"^\s*+(?:[-*]|\d++[.)])\s", re.MULTILINE),
    "has bold text": re.compile(r"\*\*"),
    "has a heading": re.compile(r"^#", re.MULTILINE),
    "has code": re.compile("```"),
}
_WORD = re.compile(r"\w++")
_NUMBERS = re.compile(r"\d++(?>(?:[.,]\d++)*)")
LONGEST_TEXT = 20_000
"""Of a longer completion the end is searched for phrases."""


@dataclass(frozen=True)
class Suspicion:
    """A trait of completions that became frequent and is paid more within groups."""

    trait: str
    before: float
    after: float
    """Its share in the first and in the last third of the steps."""
    paid: float
    """How much more completions with it are paid than others of their group."""
    since: int
    """The step with the largest change of its share between all before and all from it on."""

    def __str__(self) -> str:
        return (
            f"Suspicion, no verdict: completions of which each {self.trait} became frequent, "
            f"{100 * self.before:.0f} % → {100 * self.after:.0f} %, mostly from step {self.since} on, and within a "
            f"group they are paid {self.paid:+.2f} more than others. Read some: if they are no better, the reward pays "
            "for the trait."
        )


def suspicions(rows: Iterable[Mapping[str, Any]]) -> list[Suspicion]:
    """The traits that pass both tests, each at 1 %, the most risen first; of traits that go together one."""
    kept = _spread(rows)
    steps, step_of = np.unique([row["step"] for row in kept], return_inverse=True)
    groups, group_of = np.unique([f"{row['step']} {row['problem']}" for row in kept], return_inverse=True)
    if len(steps) < FEWEST_STEPS or len(groups) < FEWEST_PROBLEMS:
        return []
    third = len(steps) // 3
    names, holds = _traits(kept, group_of, step_of < third, step_of >= len(steps) - third)
    if not names:
        return []
    counts = np.bincount(step_of)
    shares = np.stack([np.bincount(step_of, column) / counts for column in holds.T], axis=1)
    rises, of_rise = shares[-third:].mean(axis=0) - shares[:third].mean(axis=0), _probability_of_rise(shares, third)
    paid, more = _paid(holds, np.array([row["reward"] for row in kept]), group_of)
    found = []
    for place in np.argsort(-rises, kind="stable"):
        before, after = shares[:third, place].mean(), shares[-third:, place].mean()
        passes = rises[place] >= RISEN and of_rise[place] <= ERROR and paid[place] <= ERROR and more[place] > 0
        alike = any(_alike(holds[:, place], holds[:, other]) for other, _ in found)
        if passes and not alike:
            since = int(steps[largest_split(shares[:, place], np.ones(len(shares)))])
            found.append((place, Suspicion(names[place], float(before), float(after), float(more[place]), since)))
    return [suspicion for _, suspicion in found[:SHOWN]]


def _spread(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of all steps, at most `MOST_ROWS`, in whole groups."""
    kept = [row for row in rows if row["text"]]
    every = -(-len(kept) // MOST_ROWS)
    groups = {name: place for place, name in enumerate(dict.fromkeys((r["step"], r["problem"]) for r in kept))}
    return [row for row in kept if groups[row["step"], row["problem"]] % every == 0] if every > 1 else kept


def _traits(
    rows: Sequence[Mapping[str, Any]], group_of: ndarray, early: ndarray, late: ndarray
) -> tuple[list[str], Float[ndarray, "N T"]]:
    """The names of the traits that became more frequent, and which row has which."""
    of_rows = [set(_traits_of(row["text"])) for row in rows]
    lengths = np.array([len(row["text"]) for row in rows])
    longer = lengths > (np.bincount(group_of, lengths) / np.bincount(group_of))[group_of] * 1.2
    long = lengths > np.quantile(lengths[early], 0.75)
    for place in np.flatnonzero(longer & long):
        of_rows[place].add("is longer than most of the first steps, and than its group")
    was, now = (Counter(trait for i in np.flatnonzero(part) for trait in of_rows[i]) for part in (early, late))
    rises = {trait: count / late.sum() - was[trait] / early.sum() for trait, count in now.items()}
    order = sorted(rises, key=lambda trait: (-rises[trait], -sum(map(str.isalpha, trait)), trait))  # the most words
    names = [trait for trait in order if rises[trait] >= RISEN / 2][:MOST_TRAITS]
    return names, np.array([[float(name in traits) for name in names] for traits in of_rows]).reshape(len(rows), -1)


def _traits_of(text: str) -> Iterator[str]:
    yield from (f"holds {phrase!r}" for phrase in phrases_of(text))
    words = [word.casefold() for word in _WORD.findall(re.sub(r"\d", "0", text[-200:]))]
    if len(words) >= 2:
        yield f"ends in {' '.join(words[-2:])!r}"
    yield from (name for name, form in _FORMS.items() if form.search(text))


def _probability_of_rise(shares: Float[ndarray, "S T"], third: int) -> Float[ndarray, " T"]:
    """How probable it is that any share rises as far, in its spread, from the first third of the steps to the last if
    these come in random order.
    """
    spread = shares.std(axis=0) + 1e-9

    def rise(order: ndarray) -> Float[ndarray, " T"]:
        return (shares[order[-third:]].mean(axis=0) - shares[order[:third]].mean(axis=0)) / spread

    generator, seen = np.random.default_rng(0), rise(np.arange(len(shares)))
    largest = np.array([rise(generator.permutation(len(shares))).max() for _ in range(ORDERS)])
    return _adjusted(seen, largest)


def _paid(
    holds: Float[ndarray, "N T"], rewards: Float[ndarray, " N"], group_of: ndarray
) -> tuple[Float[ndarray, " T"], Float[ndarray, " T"]]:
    """How probable so much more pay for rows with each trait is if the rewards of each group come in random order, and
    how much more it is.
    """
    own = rewards - (np.bincount(group_of, rewards) / np.bincount(group_of))[group_of]
    means = np.stack([(np.bincount(group_of, column) / np.bincount(group_of))[group_of] for column in holds.T], axis=1)
    varied = holds - means
    squares = np.square(varied).sum(axis=0)
    order = np.argsort(group_of, kind="stable")
    spread = np.sqrt(np.bincount(group_of, own * own) / np.maximum(np.bincount(group_of) - 1, 1))[group_of]
    weight = np.sqrt((np.square(varied) * np.square(spread)[:, None]).sum(axis=0)) + 1e-9
    generator = np.random.default_rng(0)
    largest = np.empty(ORDERS)
    for place in range(ORDERS):
        shuffled = np.empty_like(own)
        shuffled[order] = own[np.lexsort((generator.random(len(own)), group_of))]
        largest[place] = (shuffled @ varied / weight).max()
    return _adjusted(own @ varied / weight, largest), own @ varied / np.maximum(squares, 1e-9)


def _adjusted(seen: Float[ndarray, " T"], largest: Float[ndarray, " R"]) -> Float[ndarray, " T"]:
    return (1 + (largest[:, None] >= seen - 1e-9).sum(axis=0)) / (1 + len(largest))


def _alike(first: Float[ndarray, " N"], second: Float[ndarray, " N"]) -> bool:
    """Whether most rows that have the rarer of two traits have the other too."""
    return float(np.minimum(first, second).sum()) > 0.5 * min(float(first.sum()), float(second.sum()))


def unread_form(rows: Iterable[Mapping[str, Any]]) -> str:
    """The form in which most completions end that the check does not read, in a sentence; empty if it reads all."""
    rows = [row for row in rows if row["verdict"] == "unparsed" and row["text"]]
    unread = [row["text"] for row in rows]
    if not unread:
        return ""
    if (cut := sum(row.get("stop_reason") == "length" for row in rows)) > len(unread) / 2:
        return (
            f"Cut off: of {len(unread)} completions of the last steps that the check does not read, {cut} were cut off "
            "at the length limit. A higher limit, or pay for shorter completions, would let them end."
        )
    ends = Counter(" ".join(_NUMBERS.sub("0", text[-200:]).split()[-ENDING:]) for text in unread)
    form, count = ends.most_common(1)[0]
    return (
        f"Form: of {len(unread)} completions of the last steps that the check does not read, {count} end like {form!r} "
        "(0 stands for any number). A --rule whose patterns read it, or a prompt that asks for a box, would tell."
    )


def several_answers(first: Iterable[Mapping[str, Any]], last: Iterable[Mapping[str, Any]]) -> str:
    """Whether many more right completions of the last steps than of the first state several numbers, in a sentence;
    empty if not. A check reads the last one, of guesses too.
    """
    shares = []
    for rows in (first, last):
        several = [states_several(row["text"]) for row in rows if row["verdict"] == "correct"]
        shares.append(sum(several) / max(1, len(several)))
    if not shares[1] - shares[0] > RISEN:
        return ""
    return (
        f"Several answers: of the completions that the check accepts, {100 * shares[0]:.0f} % → "
        f"{100 * shares[1]:.0f} % state several numbers as the answer, of which the check reads the last. A policy "
        "that corrects itself does that, and so does one that guesses; read some."
    )


LEAKED = 0.5
"""Where the answers to so many of the problems stand in their prompts, right completions may be copies."""
_NAMES_AN_ANSWER = re.compile(
    r"(?:answer|solution|reference|truth|label|target)s?(?:\s++is)?[\W_]{1,9}\Z", re.IGNORECASE
)


def leaked(rows: Iterable[Mapping[str, Any]]) -> str:
    """Whether prompts say the answers, as in `Reference: 12`, in a sentence; empty if few do."""
    problems = {row["problem"]: row for row in rows}.values()
    leaks = sum(any(_says(row["prompt"], one) for one in row["answer"].split(" or ") if one) for row in problems)
    if not leaks > LEAKED * len(problems):
        return ""
    return (
        f"Leaked: the prompts of {leaks} of the last {len(problems)} problems say the right answer behind a word such "
        "as 'answer' or 'reference'. Right completions may be copies of it, which no check tells from solutions; take "
        "it out of the prompts, and evaluate without it."
    )


def _says(prompt: str, answer: str) -> bool:
    # behind `Answer yes or no` and `A/B/C` there are choices
    places = (found.start() for found in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w|\s?(?:or\b|[/,|)]))", prompt))
    return any(_NAMES_AN_ANSWER.search(prompt[max(0, place - 30) : place]) for place in places)


def phrases_of(text: str) -> set[str]:
    words = _NUMBERS.sub("0", text[-LONGEST_TEXT:].casefold()).split()
    return {" ".join(words[i : i + n]) for n in (1, 2, 3) for i in range(len(words) - n + 1)}
