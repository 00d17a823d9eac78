"""What the forms of an English word have in common, so that a question's word is known in an answer."""

import re
from functools import lru_cache

from cooper_verify.rules.text.plain_text import stem
from cooper_verify.rules.vocabulary.number_words import ONES

IRREGULAR: dict[str, str] = dict(
    re.findall(
        r"(\w+)=(\w+)",
        """
made=make paid=pay took=take gave=give sold=sell bought=buy went=go gone=go slept=sleep threw=throw spent=spend
ate=eat eaten=eat drank=drink ran=run got=get had=have has=have kept=keep lost=lose won=win found=find
grew=grow grown=grow wrote=write written=write drove=drive driven=drive rode=ride swam=swim flew=fly
built=build caught=catch taught=teach brought=bring thought=think told=tell sent=send lent=lend held=hold
stood=stand sat=sit met=meet led=lead fed=feed shot=shoot wore=wear broke=break broken=break chose=choose
stole=steal rose=rise fell=fall began=begin sang=sing drew=draw knew=know saw=see seen=see came=come
became=become did=do does=do done=do said=say heard=hear felt=feel left=leave laid=lay dug=dig hung=hang
people=person men=man women=woman children=child feet=foot mice=mouse knives=knife shelves=shelf loaves=loaf
leaves=leave halves=half wolves=wolf bore=bear given=give taken=take worn=wear thrown=throw known=know
used=use uses=use using=use owed=owe owes=owe owing=owe tied=tie ties=tie died=die dies=die aged=age ages=age
woke=wake drawn=draw drunk=drink flown=fly gotten=get ridden=ride sung=sing sewn=sew stuck=stick swum=swim
""",
    )
)
"""Forms of words that have another stem than the word."""


@lru_cache(8192)
def form_of(word: str) -> str:
    """What a word's forms have in common: its stem, of a number word the number."""
    word = word.casefold().removesuffix("'s").removesuffix("\u2019s")
    return str(ONES[word]) if ONES.get(word, 0) > 1 else stem(IRREGULAR.get(word, word))
