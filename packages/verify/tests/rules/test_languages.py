"""What is claimed of a language works in it: the same sentences in each, and nothing but boxes in any other."""

import pytest

from cooper_base.data.text import boxed
from cooper_verify.rules.verdicts.fast_path import fast_verdict
from cooper_verify.rules.verdicts.options import choice_verdict, reference_choice
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from cooper_verify.rules.vocabulary.languages import LANGUAGES

SENTENCES = {
    "English": {
        "statement": "The answer is {}.",
        "final": "The final answer is {}.",
        "label": "Answer: {}",
        "sentence": "So the distance is {} km.",
        "estimate": "The answer is about {}.",
        "no statement": "The answer is not {}.",
        "no sentence": "The distance is not {} km.",
        "bound": "The answer is at least {}.",
        "bound in a sentence": "The distance is at least {} km.",
        "either": "The answer is {} or 99.",
        "option": "Option {}",
        "option stated": "The answer is {}.",
    },
    "French": {
        "statement": "La réponse est {}.",
        "final": "La réponse finale est {}.",
        "label": "Réponse : {}",
        "sentence": "Donc la distance est {} km.",
        "estimate": "La réponse est environ {}.",
        "no statement": "La réponse n'est pas {}.",
        "no sentence": "La distance n'est pas {} km.",
        "bound": "La réponse est au moins {}.",
        "bound in a sentence": "La distance est au moins {} km.",
        "either": "La réponse est {} ou 99.",
        "option": "Option {}",
        "option stated": "La bonne réponse est {}.",
    },
    "German": {
        "statement": "Die Antwort lautet {}.",
        "final": "Die endgültige Antwort ist {}.",
        "label": "Antwort: {}",
        "sentence": "Also beträgt die Entfernung {} km.",
        "estimate": "Die Antwort ist ungefähr {}.",
        "no statement": "Die Antwort ist nicht {}.",
        "no sentence": "Die Entfernung ist nicht {} km.",
        "bound": "Die Antwort ist mindestens {}.",
        "bound in a sentence": "Die Entfernung ist mindestens {} km.",
        "either": "Die Antwort ist {} oder 99.",
        "option": "Option {}",
        "option stated": "Die richtige Antwort ist {}.",
    },
    "Spanish": {
        "statement": "La respuesta es {}.",
        "final": "La respuesta final es {}.",
        "label": "Respuesta: {}",
        "sentence": "Entonces la distancia es {} km.",
        "estimate": "La respuesta es aproximadamente {}.",
        "no statement": "La respuesta no es {}.",
        "no sentence": "La distancia no es {} km.",
        "bound": "La respuesta es al menos {}.",
        "bound in a sentence": "La distancia es al menos {} km.",
        "either": "La respuesta es {} o 99.",
        "option": "Opción {}",
        "option stated": "La respuesta correcta es {}.",
    },
    "Portuguese": {
        "statement": "A resposta é {}.",
        "final": "A resposta final é {}.",
        "label": "Resposta: {}",
        "sentence": "Portanto, a distância é {} km.",
        "estimate": "A resposta é aproximadamente {}.",
        "no statement": "A resposta não é {}.",
        "no sentence": "A distância não é {} km.",
        "bound": "A resposta é pelo menos {}.",
        "bound in a sentence": "A distância é pelo menos {} km.",
        "either": "A resposta é {} ou 99.",
        "option": "Opção {}",
        "option stated": "A resposta correta é {}.",
    },
    "Italian": {
        "statement": "La risposta è {}.",
        "final": "La risposta finale è {}.",
        "label": "Risposta: {}",
        "sentence": "Quindi la distanza è {} km.",
        "estimate": "La risposta è circa {}.",
        "no statement": "La risposta non è {}.",
        "no sentence": "La distanza non è {} km.",
        "bound": "La risposta è almeno {}.",
        "bound in a sentence": "La distanza è almeno {} km.",
        "either": "La risposta è {} o 99.",
        "option": "Opzione {}",
        "option stated": "La risposta corretta è {}.",
    },
    "Russian": {
        "statement": "Ответ равен {}.",
        "final": "Окончательный ответ: {}.",
        "label": "Ответ: {}",
        "sentence": "Итак, расстояние равно {} км.",
        "estimate": "Ответ: примерно {}.",
        "no statement": "Ответ не {}.",
        "no sentence": "Расстояние не {} км.",
        "bound": "Ответ: не менее {}.",
        "bound in a sentence": "Расстояние не меньше {} км.",
        "either": "Ответ: {} или 99.",
        "option": "Вариант {}",
        "option stated": "Правильный ответ: {}.",
    },
    "Chinese": {
        "statement": "答案是{}。",
        "final": "最终答案是{}。",
        "label": "答案：{}",
        "sentence": "所以距离是{}公里。",
        "estimate": "答案大约是{}。",
        "no statement": "答案不是{}。",
        "no sentence": "距离不是{}公里。",
        "bound": "答案至少是{}。",
        "bound in a sentence": "距离至少是{}公里。",
        "either": "答案是{}或99。",
        "option": "选{}",
        "option stated": "正确答案是{}。",
    },
    "Japanese": {
        "statement": "答えは{}です。",
        "final": "最終的な答えは{}です。",
        "label": "答え：{}",
        "sentence": "したがって、距離は{}kmです。",
        "estimate": "答えは約{}です。",
        "no statement": "答えは{}ではありません。",
        "no sentence": "距離は{}kmではない。",
        "bound": "答えは{}以上です。",
        "bound in a sentence": "距離は少なくとも{}kmです。",
        "either": "答えは{}または99です。",
        "option": "選択肢{}",
        "option stated": "答えは{}です。",
    },
    "Korean": {
        "statement": "답은 {}입니다.",
        "final": "최종 답은 {}입니다.",
        "label": "정답: {}",
        "sentence": "따라서 거리는 {}km입니다.",
        "estimate": "답은 약 {}입니다.",
        "no statement": "답은 {}이 아닙니다.",
        "no sentence": "거리는 {}km가 아닙니다.",
        "bound": "답은 {} 이상입니다.",
        "bound in a sentence": "거리는 최소 {}km입니다.",
        "either": "답은 {} 또는 99입니다.",
        "option": "보기 {}",
        "option stated": "정답은 {}입니다.",
    },
}
ELSEWHERE = [
    *["Het antwoord is {}.", "Het antwoord is niet {}.", "Dus de afstand is {} km."],
    *["Odpowiedź to {}.", "Odpowiedź to nie {}.", "Cevap {}.", "الجواب هو {}.", "उत्तर {} है।", "Svaret är inte {}."],
]


def test_every_language_of_the_table_has_the_same_sentences():
    assert {*SENTENCES} == {language.name for language in LANGUAGES}
    assert {tuple(sentences) for sentences in SENTENCES.values()} == {tuple(SENTENCES["English"])}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_value_is_read_where_a_language_states_it(name: str):
    for kind in ("statement", "label", "sentence", "final"):
        for number in ("12", "-7", "1,250", "3.5"):
            text = "5 + 94 = 99\n" + SENTENCES[name][kind].format(number)
            assert maths_verdict(number, text) == "correct", text
            assert maths_verdict("99", text) == "wrong", text
    assert maths_verdict("12", f"{boxed('99')}\n{SENTENCES[name]['final'].format(12)}") == "correct"


@pytest.mark.parametrize("name", SENTENCES)
def test_what_changes_a_value_in_a_language_pays_nothing(name: str):
    for kind in ("estimate", "no statement", "no sentence", "bound", "bound in a sentence", "either"):
        for number in ("12", "250"):
            for reference in (number, f"{number} km"):
                assert maths_verdict(reference, SENTENCES[name][kind].format(number)) != "correct", kind


@pytest.mark.parametrize("name", SENTENCES)
def test_an_option_is_read_in_a_language(name: str):
    expected = reference_choice("B")
    assert expected is not None
    for kind in ("option", "option stated", "label"):
        text = SENTENCES[name][kind]
        assert choice_verdict(expected, text.format("B"), {}) == "correct", text
        assert choice_verdict(expected, text.format("C"), {}) == "wrong", text


@pytest.mark.parametrize("sentence", ELSEWHERE)
def test_in_other_languages_only_a_box_that_stands_alone_counts(sentence: str):
    assert fast_verdict("12", sentence.format(12)) == "unparsed"
    assert fast_verdict("12", sentence.format(boxed("12"))) == "unparsed"  # it may say that it is not 12
    assert fast_verdict("12", f"{sentence.format('')}\n{boxed('12')}") == "correct"


BOXES = {
    "Japanese": ["したがって、答えは{}である。", "よって、答えは {} となる。", "答えは{}個です。"],
    "Korean": ["따라서 정답은 {}입니다.", "그러므로 답은 {} 이다."],
    "Russian": ["Таким образом, ответ: {}", "Таким образом, искомое число равно {}."],
    "Chinese": ["综上所述，答案为{}。"],
    "German": ["Somit ergibt sich {}."],
    "Spanish": ["Finalmente, obtenemos {}."],
}


@pytest.mark.parametrize("language", BOXES)
def test_a_box_in_a_sentence_is_read(language: str):
    verdicts = {text: fast_verdict("12", text.format(boxed("12"))) for text in BOXES[language]}
    assert {*verdicts.values()} == {"correct"}, verdicts


NOT_ENDINGS = [
    "答えは{}ではない。",
    "答えは{}より大きい",
    "정답은 {}가 아닙니다.",
    "정답은 {}보다 작습니다.",
    "答えは{}万です",
]


@pytest.mark.parametrize("text", NOT_ENDINGS)
def test_what_stands_behind_a_box_without_a_space_is_no_ending(text: str):
    assert fast_verdict("12", text.format(boxed("12"))) != "correct"
