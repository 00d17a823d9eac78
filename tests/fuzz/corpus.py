"""The seeds of each target: valid input to mutate, and input known to be nasty."""

import io
import json
from random import Random

import yaml
from targets import SEPARATOR, TARGETS

from cooper_base.files.journal import _HEADER

_ROW = {"question": "1+1?", "answer": "2", "completion": "It is \\boxed{2}.", "reference_answer": "2", "label": 1}
_JSON = json.dumps(_ROW)
_BODY = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "yes"},
            "finish_reason": "stop",
            "logprobs": {"content": [{"top_logprobs": [{"token": "yes", "logprob": -0.1}]}]},
        }
    ]
}
_DEEP = b"[" * 20_000
_NASTY = [
    b"",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\xff\xfe\x00",
    b"\r\n\r\n",
    "\u2028\u0661\u00b2".encode(),
    b'"\\ud800"',
    _DEEP,
    b'{"a":' * 20_000,
    b"9" * 10_000,
]


def _changed(key: str, *values: str) -> list[bytes]:
    """Copies of the row with `key` set to each of the values, which are JSON text."""
    rest = json.dumps({name: value for name, value in _ROW.items() if name != key})[:-1]
    return [f'{rest}, "{key}": {value}}}'.encode() for value in values]


_ODD_VALUES = ("NaN", "Infinity", "1e999", "9" * 400, "true", "null", "[1]", "{}", '"\\ud800"', '"a", "label": 0')
_ODD_ROWS = [row for key in _ROW for row in _changed(key, *_ODD_VALUES)]


def _yaml(text: str = "", **changes: object) -> bytes:
    settings = {"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "p.jsonl"}, **changes}
    return (yaml.safe_dump(settings) + text).encode()


_BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)), ""])
_CONFIGS = [
    _yaml(),
    _yaml("seed: 1\nseed: 2\n"),
    _yaml("seed: true\n"),
    _yaml("policy: {model: m, learning_rate: .nan}\n"),
    _yaml("rollout: {temperature: .inf}\n"),
    _yaml("name: !!python/object/apply:os.system ['true']\n"),
    _yaml('name: "\\ud800"\n'),
    _yaml("kind: [1]\n"),
    _yaml("kind: paper\ncooptimization: {pairs: {a: 1}}\n"),
    _yaml("seed: 2001-99-99\n"),
    _yaml("seed: !!bool x\n"),
    _yaml("? [a, b]\n: 1\n"),
    _yaml("? {a: b}\n: 1\n"),
    _yaml("1: 2\n"),
    _yaml("name: &n [*n]\n"),
    _yaml(_BOMB),
    _BOMB.encode() + b"name: *a59\n",
    b"kind: rule\r\npolicy: {model: m}\r\nproblems: {source: p}\r\n",
    b"a: " + _DEEP,
]
_OVERRIDES = [
    b"seed=1",
    b"policy.learning_rate=.nan",
    b"seed=true",
    b"a..b=1",
    b"=",
    b"seed=!!timestamp x",
    b"name=\xff",
    b"seed=" + _DEEP,
    b"name=&a [*a]",
]
_ANSWERS = [
    ("12", r"so it is \boxed{12}"),
    ("3/4", "answer: 0.75"),
    ("1,234", "The answer is $1,234 dollars."),
    ("12", "answer: 12 dozen"),
    ("12", "#### 12."),
    ("x+1", r"\boxed{1+x}"),
    ("7", "answer: " + "(" * 1000),
    ("5", "The answer is 5" + "!" * 44 + " because"),
    ("5 cm", r"\boxed{5 cm" + "^ 2" * 40 + "?}"),
    ("5 cm" + "^{2}" * 40, "5 cm" + "^{2}" * 40 + "x"),
    ("7", "1, " * 40 + "x"),
    ("7", "\ud800 answer: 7"),
    ("7", r"\boxed{7\x00}"),
    ("7", r"\boxed{" * 500 + "7" + "}" * 500),
    ("0", "answer: -0"),
    ("12", "answer: \u0661\u0662"),
    ("5", "answer: 5e0"),
    ("1000000", "answer: 10^6"),
]
_HEAD = json.dumps({_HEADER: {"n": 2}})
_VERDICT = '{"answer": "2", "completion": "answer: 2", "verdict": "correct", "seconds": 0.1}'
_MARKUP = [
    b"<script>alert(1)</script>",
    b"</pre><img src=x onerror=alert(1)>",
    b"{{ 7*7 }}{% raw %}",
    b"\"'><svg onload=alert(1)>",
    b"<!--",
    b"]]></style><script>",
]
_REPLIES = [b"yes", b"Verdict: no", b"<think>a", b"Sure, here is it:\n```\n7\n```", b"<|a|>" * 200, b"</s> " * 200]
_CHOICES = [Random(seed).randbytes(64) for seed in range(60)]
"""Of forms of the grammar; `grammar.py` reads as many as one likes."""
_CALLS = [
    b'<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>',
    b"<tool_response>\n19\n</tool_response>",
    *(part * 20_000 for part in (b"<tool_call>{}", b"<tool_response>", b"< ", b"<|im_start|>user\n", b"<|im_end|>")),
]


def _parquet() -> list[bytes]:
    import pyarrow
    from pyarrow import parquet

    columns = [pyarrow.array([value, None, value]) for value in _ROW.values()]
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns, names=list(_ROW)), buffer)
    return [buffer.getvalue()]


def _seeds(target: str) -> list[bytes]:
    if target.endswith((".jsonl", ".json")) or target == "bench":
        return [_JSON.encode(), f"[{_JSON},\n{_JSON}]".encode(), f"{_JSON}\r\n{_JSON}".encode(), *_ODD_ROWS]
    if target.endswith(".csv"):
        header = ",".join(_ROW)
        return [
            f"{header}\n1,2,3,4,1\n".encode(),
            f"{header}\n1,2\n".encode(),
            b"a,a\n1,2\n",
            b'a,b\n"' + b"x" * 200_000,
        ]
    if target.endswith(".parquet"):
        return _parquet()
    return {
        "config_file": _CONFIGS,
        "config_override": _OVERRIDES,
        "earlier_verdicts": [
            f"{_VERDICT}\n".encode(),
            b"[1]\n",
            b"7\n",
            _VERDICT.replace('"correct"', '"fine"').encode() + b"\n",
            _VERDICT.replace('"correct"', "[]").encode() + b"\n",
        ],
        "journal": [
            f'{_HEAD}\n{{"key": "b", "value": 1}}\n'.encode(),
            f'{_HEAD}\n{{"key": []}}\n'.encode(),
            f"{_HEAD}\n7\n".encode(),
            f'{_HEAD}\n{{"key": [], "value": 1}}\n'.encode(),
            f'{{"{_HEADER}": 7}}\n'.encode(),
            f'{{"{_HEADER}": \n'.encode(),
        ],
        "chat_reply": [
            json.dumps(_BODY).encode(),
            *(json.dumps(_BODY).replace("-0.1", odd).encode() for odd in ("NaN", "1e999", "9" * 400, "800", '"nan"')),
            *(json.dumps(_BODY).replace('"yes"', odd).encode() for odd in ("null", "7", '"\\ud800"', "[[]]")),
        ],
        "readers": _CHOICES,
        "reply_text": _REPLIES,
        "transcript": _CALLS,
        "report_page": _MARKUP,
    }.get(target, [f"{a}{SEPARATOR}{c}".encode(errors="surrogatepass") for a, c in _ANSWERS])


SEEDS = {target: _seeds(target) + _NASTY for target in TARGETS}
