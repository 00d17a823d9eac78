"""Sentences of everyday words around a value, read without the question: who does what with which things."""

import pytest

from cooper_verify.rules.symbolic import maths_verdict

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
"""
NOT_READ = r"""
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
\boxed{12} garden
"""


@pytest.mark.parametrize("text", READ.strip().splitlines())
def test_who_does_what_where_and_when_changes_no_value(text: str):
    assert maths_verdict("12", text) == "correct"
    assert maths_verdict("13", text) == "wrong"


@pytest.mark.parametrize("text", NOT_READ.strip().splitlines())
def test_everyday_words_hide_nothing_that_does(text: str):
    assert maths_verdict("12", text) != "correct"
