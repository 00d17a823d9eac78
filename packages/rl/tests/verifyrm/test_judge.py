"""The judge: its prompt, how replies are parsed, and that a local judge reports its model's own probability."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from chat_server import ChatServer, completion
from cooper_base.config.checking import Settings, check_settings
from cooper_base.errors import InputError
from cooper_rl.adapters.graders.config import LocalJudgeConfig
from cooper_verify.grader import Asked
from cooper_verify.graders.judge import ChatJudge, ChatJudgeConfig, JudgeFile
from cooper_verify.graders.judgement import from_probabilities, judge_chat, parse_reply

ROWS = [
    Asked.about("What is 3 + 4?", "7", "It is 7."),
    Asked.about("What is 3 + 4?", "7", "It is 8, <b>surely</b>."),
    Asked.about("What is 2 + 2, which somebody asked me?", "4", ""),
]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("yes", "yes"),
        ("No.", "no"),
        ("**Yes**, the answers agree.", "yes"),
        ("The solution says 7, and so does the reference.\nYes", "yes"),
        ("There is no error in it.\n\nVerdict: yes", "yes"),
        ("<think>no, wait, yes</think>\nno", "no"),
        ("Judgement: **no**", "no"),
        ("<think>it goes on and on, yes", "unreadable"),
        ("yes\nor rather\nno", "unreadable"),
        ("I cannot say yes or no", "unreadable"),
        ("yes or no", "unreadable"),
        ("No/Yes.", "unreadable"),
        ("**Yes** or **no**", "unreadable"),
        ("Yes or no? yes", "yes"),
        ("No | yes", "unreadable"),
        ("yes and no: the value agrees, the unit does not", "unreadable"),
        ("No, or not as far as the reference goes.", "no"),
        ('The solution ends with "Answer: yes" but the reference is 7. No', "no"),
        ('The solution ends with "Answer: yes" but the reference is 7.', "unreadable"),
        ('"Yes" is what the solution says.', "unreadable"),
        ("The solution states:\nAnswer: yes", "unreadable"),
        ("Its verdict: yes is wrong; the reference says otherwise.", "unreadable"),
        ("The reference is yes. The solution concludes with Answer: no.", "unreadable"),
        ("The solution says that the answer is yes.\n**Verdict:** no", "no"),
        ("They agree. So, yes.", "yes"),
        ("Yes, the solution says no, as the reference does.", "yes"),
        ("Yes.\nVerdict: no", "unreadable"),
        ("[THINK]no[/THINK]Yes", "yes"),
        ("nothing", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_only_clear_replies_are_read(reply, verdict):
    assert parse_reply(reply) == verdict


def test_a_long_completion_keeps_its_end():
    [_, user] = judge_chat("q", "7", "a" * 5000 + "The answer is 7.", max_completion_chars=200)
    assert "The answer is 7." in user["content"]
    assert len(user["content"]) < 1500


def server_says_yes_to_seven(request, number):
    task = request["messages"][-1]["content"]
    yes = "It is 7." in task
    first_token = {"yes" if yes else "no": math.log(0.8), " Yes" if yes else " No": math.log(0.1), "maybe": -3.0}
    return completion("yes" if yes else "no", first_token=first_token if request.get("top_logprobs") else None)


@pytest.mark.parametrize("read", ["text", "first_token"])
def test_a_judge_behind_a_server(read):
    with ChatServer(server_says_yes_to_seven) as server:
        judge = ChatJudge(ChatJudgeConfig(base_url=server.url, model="m", read=read))
        judge.check()
        judgements = judge.judge(ROWS)
        judge.close()
    assert [j.verdict for j in judgements] == ["yes", "no", "no"]
    assert [j.probability for j in judgements] == ([1.0, 0.0, 0.0] if read == "first_token" else [None] * 3)


def test_a_failed_server_or_missing_probabilities_do_not_count_as_no():
    def fails(request, number):
        return completion("yes", status=400)

    with ChatServer(fails) as server:
        judge = ChatJudge(ChatJudgeConfig(base_url=server.url, model="m", max_retries=0))
        assert [(j.verdict, j.failed) for j in judge.judge(ROWS[:1])] == [("unreadable", True)]
        with pytest.raises(InputError, match="http_4xx"):
            judge.check()
        judge.close()
    with ChatServer(lambda request, number: completion("yes")) as server:
        judge = ChatJudge(ChatJudgeConfig(base_url=server.url, model="m", read="first_token"))
        with pytest.raises(InputError, match="read: text"):
            judge.check()
        judge.close()


def test_probabilities_of_other_words_are_not_an_answer():
    assert from_probabilities({"Yes": 0.02, "No": 0.01, "Well": 0.9}).verdict == "unreadable"
    judged = from_probabilities({"Yes": 0.3, " yes": 0.1, "No": 0.1})
    assert (judged.verdict, judged.probability) == ("yes", pytest.approx(0.8))


@pytest.fixture(scope="module")
def yes_no_model(tmp_path_factory):
    """A tiny random model whose tokenizer has the words yes and no as tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["[UNK]", "[EOS]", "yes", "no", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="[EOS]", pad_token="[EOS]", unk_token="[UNK]")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=512, eos_token_id=1, pad_token_id=1, bos_token_id=None,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("judge")
    model = LlamaForCausalLM(config)
    torch.nn.init.normal_(model.lm_head.weight, std=0.5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_local_judge_reports_the_models_own_probability_whatever_else_is_in_the_batch(yes_no_model):
    judge = LocalJudgeConfig(model=str(yes_no_model), device="cpu", max_rows=2).build()
    together = judge.judge(ROWS)
    alone = [judge.judge([row])[0] for row in ROWS]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(yes_no_model), AutoTokenizer.from_pretrained(yes_no_model)
    for row, batched, single in zip(ROWS, together, alone, strict=True):
        chat = judge_chat(row.problem.question, row.problem.answer, row.completion)
        prompt = "\n\n".join(message["content"] for message in chat) + "\n\n"
        with torch.no_grad():
            logits = model(torch.tensor([tokenizer.encode(prompt)])).logits[0, -1].double()
        yes, no = logits.softmax(0)[[2, 3]].tolist()
        expected = from_probabilities({"yes": yes, "no": no})
        assert single.verdict == batched.verdict == expected.verdict
        if expected.probability is not None:
            assert batched.probability == pytest.approx(expected.probability, abs=1e-5)


def test_a_local_judge_is_not_asked_a_question_that_does_not_fit(yes_no_model):
    writes = LocalJudgeConfig(model=str(yes_no_model), read="text", device="cpu", max_tokens=4).build()
    long = Asked.about("a " * 600, "7", "7")
    assert [j.detail for j in writes.judge([long])] == ["the prompt exceeds the judge's context"]


def test_a_judge_file_with_a_typo_names_the_key():
    settings = Settings({"judge": {"kind": "local", "model": "m", "reed": "text"}}, "judge.yaml")
    with pytest.raises(InputError, match="did you mean 'read'"):
        check_settings(JudgeFile, settings)
