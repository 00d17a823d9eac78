"""Sentences of everyday words around a value, read without the question: who does what with which things."""

import pytest

from cooper_verify.rules.asked.everyday_words import is_everyday, is_verb
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from cooper_verify.rules.vocabulary.languages import LANGUAGES

READ = r"""
Lucy picked \boxed{12} apples in the garden.
So Tom has \boxed{12} marbles left in the jar.
The farmer harvested \boxed{12} baskets of tomatoes on Monday.
The total cost of the shirts is \boxed{12} dollars.
Each child gets \boxed{12} candies.
The bakery sold \boxed{12} cakes over the next three days.
Maria will save \boxed{12} dollars in 6 weeks.
He ended up with \boxed{12} stickers.
They need \boxed{12} buses to transport the 300 students.
She pays \boxed{12} dollars for 5 apples and 5 oranges.
On the third day Sam read \boxed{12} pages.
One sister has \boxed{12} more beads than the other.
The landscaping company will need \boxed{12} trucks.
It will take Matthew \boxed{12} hours.
The number of even integers that are not divisible by 3 is \boxed{12}.
The probability that the card is not red is \boxed{12}.
The sixth term is \boxed{12}.
The larger number is \boxed{12}.
The difference between a and b is \boxed{12}.
- \boxed{12}
+ \boxed{12}
(in total, \boxed{12})
Question 5: \boxed{12}
The given number is $n = \boxed{12}$.
"""
NOT_READ = r"""
Half the sum is \boxed{12}.
The sixth of the sum is \boxed{12}.
log \boxed{12}
x ≥ \boxed{12}
\boxed{12} ≤ x
2\boxed{12}
10 + \boxed{12}
1/ \boxed{12}
10^ \boxed{12}
(0, \boxed{12})
$x \in [0, \boxed{12})$
Between 10 and \boxed{12}
The answer is 12 and change.
The answer is 12 before tax.
The answer is 12 (a lower bound).
x^{\boxed{12}}
Lucy barely picked \boxed{12} apples.
Lucy did not pick \boxed{12} apples.
Lucy might have picked \boxed{12} apples.
Nobody picked \boxed{12} apples.
Lucy picked fewer than \boxed{12} apples.
Lucy picked over \boxed{12} apples.
He saved up to \boxed{12} dollars.
Lucy picked half of \boxed{12} apples.
Lucy picked another \boxed{12} apples.
Lucy picked \boxed{12} dozen apples.
Lucy picked \boxed{12} apples too many.
Lucy picked \boxed{12} apples, but that is wrong.
Lucy thought she picked \boxed{12} apples.
Lucy wanted \boxed{12} apples.
The set holds \boxed{12}.
The answer leaves out \boxed{12}.
She read on page \boxed{12}.
There are \boxed{12} apples in the red.
The room is \boxed{12} feet by 13 feet.
It takes \boxed{12} hours with 13 minutes.
It takes \boxed{12} hours to 13 hours.
\boxed{12} out of 20 people like it.
\boxed{12} in 20 people like it.
I take \boxed{12} back.
Tom's mistake was \boxed{12}.
The extraneous value is \boxed{12}.
The answer used to be 12.
The answer is 12, garden.
The answer is 12. Take that with a grain of salt.
\boxed{12 in the red}
\boxed{12} \neq x
\boxed{12}, so $x = \sqrt{12}$.
\boxed{12} ¿
\boxed{12} ‽
\boxed{12}†
\boxed{12} + \epsilon
0.\boxed{12}
The answer is 12....
\boxed{12} assuming independence
The monthly salary is \boxed{12}.
So we have 12 perhaps.
≠\boxed{12}
the number after \boxed{12}
`print(12)`
{"answer": 12, "correct": false}
\boxed{12} garden
by \boxed{12}
with \boxed{12}
to the \boxed{12}
such as \boxed{12}
the root of \boxed{12}
mod \boxed{12}
cf. \boxed{12}
E.g. $\boxed{12}$
vs. \boxed{12}
No. \boxed{12}
Set $n = \boxed{12}$.
Given $n = \boxed{12}$
Let $x_1 = \boxed{12}$
\because \boxed{12}
5:\boxed{12}
"""


@pytest.mark.parametrize("text", READ.strip().splitlines())
def test_who_does_what_where_and_when_changes_no_value(text: str):
    assert maths_verdict("12", text) == "correct"
    assert maths_verdict("13", text) == "wrong"


@pytest.mark.parametrize("text", NOT_READ.strip().splitlines())
def test_everyday_words_hide_nothing_that_does(text: str):
    assert maths_verdict("12", text) != "correct"


PREPOSITIONS = "in on at by of for under"
BARE = "paper nights weekends winter school church summer Monday Tuesdays"


@pytest.mark.parametrize("place", ["The answer is 12 {}.", r"\boxed{{12}} {}", "So we have 12 {}."])
def test_an_idiom_behind_a_bare_value_is_not_read_as_a_place(place: str):
    phrases = [f"{preposition} {noun}" for preposition in PREPOSITIONS.split() for noun in BARE.split()]
    phrases += ["for now", "until now", "as of today", "by then"]
    assert [phrase for phrase in phrases if maths_verdict("12", place.format(phrase)) == "correct"] == []
    assert maths_verdict("12", place.format("in the garden")) == "correct"
    assert maths_verdict("12 years", "It is 12 years from now.") == "correct"


ASKED = (
    "Tom has twice as many as Ann, who has half of 10. A third is sold before 3. If at least 2 remain, how many is it?"
)
IN_FRONT = "twice; half of; a third of; less than; more than; at least; after; before; twice as many as; 6 more than"
BEHIND = "twice; less than half; before 3; and 3; more; less; at least"


def test_words_of_the_question_that_change_a_value_do_so_beside_the_answer():
    front = ["The answer is {} 12.", r"{} \boxed{{12}}", r"The answer is {} \boxed{{12}}.", "So Tom has {} 12 apples."]
    behind = ["The answer is 12 {}.", r"\boxed{{12}} {}", r"\boxed{{12\text{{ {}}}}}"]
    texts = [place.format(words) for words in IN_FRONT.split("; ") for place in front]
    texts += [place.format(words) for words in BEHIND.split("; ") for place in behind]
    assert [text for text in texts if maths_verdict("12", text, question=ASKED) == "correct"] == []


def test_a_comparison_for_which_the_question_asks_is_read():
    asked = "How many more apples than Ann has Tom?"
    for text in ("Tom has 12 more apples than Ann.", r"\boxed{12} more", r"Tom has \boxed{12} apples more than Ann."):
        assert maths_verdict("12", text, question=asked) == "correct"


NOUNS = "row stop bus turn shop room order work step play run show watch plan build plant store cook bake paint"


@pytest.mark.parametrize("front", ["in", "on", "at", "the", "is"])
def test_a_noun_in_front_of_a_number_is_no_verb(front: str):
    nouns = [noun for noun in NOUNS.split() if is_verb(noun)]
    assert len(nouns) > 5
    paid = [noun for noun in nouns if maths_verdict("12", f"The answer is {front} {noun} 12.") == "correct"]
    assert paid == []
    assert maths_verdict("12", f"They {nouns[0]} 12.") == "correct"


_NAMES = next(language.names for language in LANGUAGES if language.name == "English").split()


@pytest.mark.parametrize("of", ["of the answers", "of my answer", "of all answers"])
def test_what_is_made_of_answers_is_not_the_answer(of: str):
    names = [name for name in _NAMES if is_everyday(name) or len(name) > 4]
    assert [name for name in names if maths_verdict("12", f"The {name} {of} is 12.") == "correct"] == []
    asked = maths_verdict("12", f"The sum {of} is 12.", question="What is the sum of the roots?")
    assert asked == "correct"


@pytest.mark.parametrize("whose", ["Bob's", "The student's", "Somebody's", "Anna\u2019s wrong", "My friend's"])
def test_somebody_elses_answer_is_not_the_answer(whose: str):
    assert maths_verdict("12", f"{whose} answer is 12.") != "correct"
    assert maths_verdict("12", "Let's see. Here's the answer: 12") == "correct"


@pytest.mark.parametrize("place", ["The answer is {}", "So x = {}", "{}", "**{}**", "#### {}", r"\boxed{{{}}}"])
@pytest.mark.parametrize("end", ["...", "\u2026"])
def test_a_number_that_goes_on_is_not_read(place: str, end: str):
    assert maths_verdict("12", place.format(f"12{end}")) == "unparsed"
    assert maths_verdict("12", place.format("12")) == "correct"
