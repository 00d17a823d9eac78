"""A configuration either loads, or the error names the line and the remedy."""

from importlib import import_module
from uuid import uuid4

import pytest
import yaml

from cooper_base.config.checking import check_settings, read_settings
from cooper_base.config.explanation import commented_yaml
from cooper_base.errors import InputError
from cooper_lab.designs.gspo import GSPO
from cooper_rl.run_config import RunConfig, build_config, load_config
from cooper_rl.service.config import ServeConfig

MINIMAL = {"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "p.jsonl"}}


def _write(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("kind: rule\nlerning_rate: 1\n", 2, ["lerning_rate", "unknown key"]),
        (
            "kind: rule\npolicy:\n  model: m\n  learnin_rate: 1\n",
            4,
            ["policy.learnin_rate", "did you mean 'learning_rate'"],
        ),
        (
            "policy:\n  model: m\nalgorithm:\n  loss: {kind: ppo_clip, clip_hi: 1}\n",
            4,
            ["clip_hi", "did you mean 'clip_high'"],
        ),
    ],
)
def test_unknown_keys_name_their_line_and_the_nearest_key(tmp_path, text, line, words):
    with pytest.raises(InputError) as error:
        load_config(_write(tmp_path, text))
    assert f"run.yaml:{line}:" in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cooptimization:\n  assistant:\n    base_url: http://localhost/v1\n    model: m\n",
            "run.yaml:2: cooptimization.assistant: kind is missing; "
            "add kind: chat or kind: corrupter; these keys are those of kind: chat",
        ),
        ("algorithm:\n  loss: {}\n", "run.yaml:2: algorithm.loss: kind is missing; add kind: cispo or kind: gspo"),
    ],
)
def test_an_error_about_a_missing_kind_lists_the_kinds(tmp_path, text, message):
    with pytest.raises(InputError) as error:
        load_config(_write(tmp_path, text))
    assert message in str(error.value)


def test_a_value_out_of_range_names_its_line(tmp_path):
    text = "kind: rule\npolicy: {model: m}\nproblems: {source: p.jsonl}\nrollout:\n  temperature: -1\n"
    with pytest.raises(InputError, match=r"run\.yaml:5: rollout\.temperature: .*greater than or equal to 0.*-1"):
        load_config(_write(tmp_path, text))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({**MINIMAL, "kind": "cooper"}, "needs a reward model"),
        ({**MINIMAL, "evaluation": {"every": 5}}, "test_problems is missing"),
        ({**MINIMAL, "more_test_problems": {"b": {"source": "b.jsonl"}}}, "test_problems, which is missing"),
        ({**MINIMAL, "test_problems": {"source": "b"}, "more_test_problems": {"a/b": {"source": "b"}}}, "should match"),
        ({**MINIMAL, "rollout": {"n": 1}}, "nothing to compare"),
        *(
            ({**MINIMAL, "name": name}, "name: the run would be written outside")
            for name in ("..", "a/../b", "/a", ".", "")
        ),
        ({**MINIMAL, "shaping": [{"kind": "overlong", "max_tokens": 32}]}, "buffer: 128 exceeds"),
        (
            {
                **MINIMAL,
                "algorithm": {
                    "loss": {"kind": "cispo", "truncated_importance_sampling": 2},
                    "recompute_old_logprobs": False,
                },
            },
            "recompute_old",
        ),
        ({**MINIMAL, "problems_per_step": 2, "algorithm": {"minibatches": 3}}, "minibatches exceeds"),
    ],
)
def test_contradictions_are_reported(settings, words):
    with pytest.raises(InputError, match=words):
        build_config(settings)


@pytest.mark.parametrize(
    ("text", "words"), [("a: [1", "not valid YAML"), ("- 1\n", "expected a mapping"), ("policy: 3\n", "policy")]
)
def test_files_that_are_not_settings(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        load_config(_write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "reward_model:\n  model: rm\n  learning_rate: -1\n",
            "run.yaml:5: reward_model.learning_rate: Input should be",
        ),
        ("reward_model: 3\n", "run.yaml:3: reward_model: write the settings of this section"),
    ],
)
def test_an_error_in_a_short_form_names_it_as_it_was_written(tmp_path, text, words):
    with pytest.raises(InputError) as error:
        load_config(_write(tmp_path, "policy: {model: m}\nproblems: {source: p.jsonl}\n" + text))
    assert words in str(error.value)


ALIASES = "\n".join(["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60))])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("seed: 1\nseed: 2\n", "line 6: the key 'seed' appears twice"),
        ("seed: true\n", r"run\.yaml:5: seed: .*integer"),
        ("policy: {model: m, betas: [true, 0.9]}\n", "'policy' appears twice"),
        ("rollout: {temperature: true}\n", r"run\.yaml:5: rollout\.temperature: .*number"),
        ("rollout: {temperature: .inf}\n", r"run\.yaml:5: rollout\.temperature: .*finite"),
        ("rule: {timeout_s: .nan}\n", r"run\.yaml:5: rule\.timeout_s"),
        ("name: !!python/object/apply:os.system ['touch ran']\n", "could not determine a constructor"),
        ('name: "\\ud800"\n', "line 5: half a character"),
        ("name: 2001-99-99\n", "month must be in"),
        ("seed: !!bool x\n", "not valid YAML"),
        ("seed: !!timestamp x\n", "not valid YAML"),
        ("? [a, b]\n: 1\n", "line 5: a key is a sequence"),
        ("name: &n [*n]\n", "an alias within its own anchor"),
        ("name: " + "[" * 5000, "nested too deeply"),
        (ALIASES, "aliases multiply"),
        ("reward_model: {learns: [1]}\n", r"run\.yaml:5: reward_model\.learns"),
        ("name: x\ncooptimization: {pairs: {a: 1}}\n", r"run\.yaml:6: cooptimization\.pairs"),
        ("name: \0\n", "not valid YAML"),
    ],
)
def test_an_error_about_garbage_names_its_line(tmp_path, line, words):
    path = _write(tmp_path, "kind: rule\npolicy:\n  model: m\nproblems: {source: p.jsonl}\n" + line)
    with pytest.raises(InputError, match=words) as error:
        load_config(path)
    assert str(path) in str(error.value)
    assert not (tmp_path / "ran").exists()


def test_a_byte_order_mark_and_windows_line_ends_are_read_but_not_invalid_bytes(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + yaml.safe_dump(MINIMAL).replace("\n", "\r\n").encode())
    assert load_config(path).kind == "rule"
    path.write_bytes(b"name: \xff\n")
    with pytest.raises(InputError, match=r"run\.yaml: .*utf-8"):
        load_config(path)
    with pytest.raises(InputError, match=r"is a folder and not a configuration file; name a file, such as .*run\.yaml"):
        load_config(tmp_path)


def test_anchors_can_share_settings(tmp_path):
    text = "kind: rule\npolicy: {model: m}\nproblems: &p {source: p.jsonl}\ntest_problems: {<<: *p, limit: 3}\n"
    config = load_config(_write(tmp_path, text))
    assert config.test_problems is not None
    assert (config.test_problems.source, config.test_problems.limit) == ("p.jsonl", 3)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="no such configuration file; check its name and folder"):
        load_config(tmp_path / "none.yaml")
    path = _write(tmp_path, "kind: rule\n")
    with pytest.raises(InputError, match=rf"no such configuration file; did you mean {path}\?"):
        load_config(tmp_path / "rum.yml")


@pytest.mark.parametrize(
    "override",
    ["rollout.n", "=3", "kind.n=3", "seed=!!timestamp x", "name=" + "[" * 3000, "name=&a [*a]", "name=\udcff"],
)
def test_malformed_overrides(tmp_path, override):
    with pytest.raises(InputError, match="override"):
        load_config(_write(tmp_path, yaml.safe_dump(MINIMAL)), [override])


OWN_ADVANTAGE = """
from cooper_rl import AdvantageConfig

class Own(AdvantageConfig):
    scale: float = 1.0
    def advantages(self, rewards, completions=None):
        return rewards
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A user-written module with an advantage, in the working folder."""
    name = f"own_{uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(OWN_ADVANTAGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


RULE_RUN = "kind: rule\npolicy: {model: m}\nproblems: {source: arithmetic}\n"


def test_a_part_from_outside_is_loaded_from_a_file_and_written_back(tmp_path, own_module):
    settings = f"algorithm:\n  advantages: {{kind: '{own_module}:Own', scale: 2}}\n"
    (tmp_path / "run.yaml").write_text(RULE_RUN + settings)
    config = load_config(tmp_path / "run.yaml")
    assert config.algorithm.advantages == import_module(own_module).Own(scale=2.0)
    for written in (yaml.safe_dump(config.model_dump(mode="json")), commented_yaml(config)):
        (tmp_path / "again.yaml").write_text(written)
        assert load_config(tmp_path / "again.yaml") == config


def test_a_part_may_be_an_object(own_module):
    own = import_module(own_module).Own(scale=3)
    settings = {"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "arithmetic"}}
    config = build_config({**settings, "algorithm": {"advantages": own, "loss": GSPO(clip_low=0.5)}})
    assert config.algorithm.advantages is own
    assert config.algorithm.loss == GSPO(clip_low=0.5)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            "kind: 'MODULE:Own'\n    scael: 2",
            "run.yaml:7: unknown key 'algorithm.advantages.scael'; did you mean 'scale'",
        ),
        (
            "kind: 'MODULE:Own'\n    scale: much",
            "7: algorithm.advantages.scale: Input should be a valid number",
        ),
        ("kind: 'MODULE:Owm'", "run.yaml:5: algorithm.advantages.kind: MODULE:Owm: Owm does not exist in MODULE"),
        ("kind: grop", "no advantage of kind 'grop'; kinds: dr_grpo, gdpo, grpo, ipvrm"),
    ],
)
def test_an_error_in_a_part_names_its_line(tmp_path, own_module, part, message):
    text = f"{RULE_RUN}algorithm:\n  advantages:\n    {part}\n".replace("MODULE", own_module)
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        load_config(tmp_path / "run.yaml")
    assert message.replace("MODULE", own_module) in str(error.value)


def test_the_schema_of_a_run_offers_the_registered_kinds():
    schema = RunConfig.model_json_schema()
    loss = schema["$defs"]["AlgorithmConfig"]["properties"]["loss"]
    known = [one["allOf"][0]["$ref"].split("/")[-1] for one in loss["oneOf"][:-1]]
    assert known == ["CISPO", "GSPO", "PPOClip"]
    assert schema["$defs"]["GSPO"]["properties"]["clip_low"]["default"] == 3e-4
    assert loss["oneOf"][-1]["properties"]["kind"]["description"] == "package.module:Class"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("shaping=rank", r"shaping: write a list: \[\.\.\.\] \(found 'rank'\)"),
        ("policy=models/m", r"policy: write the settings of this section: \{name: value, \.\.\.\}"),
        ("rewards=[{kind:", "not valid YAML: .*; quote the whole override for the shell"),
    ],
)
def test_a_setting_of_another_shape_says_what_to_write(tmp_path, override, words):
    path = _write(tmp_path, "kind: rule\npolicy: {model: m}\nproblems: {source: p.jsonl}\n")
    with pytest.raises(InputError, match=words) as error:
        load_config(path, [override])
    assert "\n" not in str(error.value)


def test_a_second_file_is_no_setting(tmp_path):
    path = _write(tmp_path, "kind: rule\npolicy: {model: m}\nproblems: {source: p.jsonl}\n")
    with pytest.raises(InputError, match="this command reads one file; behind it stand settings"):
        load_config(path, [str(path)])


def test_a_mistake_in_settings_that_sets_share_is_told_once(tmp_path):
    text = "kind: rule\npolicy: {model: m}\nproblems: {source: p, format: gsmk8}\ntest_problems: {source: t}\n"
    with pytest.raises(InputError) as error:
        load_config(_write(tmp_path, text))
    assert str(error.value).count("found 'gsmk8'") == 1


def test_a_file_of_a_run_is_told_what_a_service_takes(tmp_path):
    path = _write(tmp_path, "name: x\nkind: rule\npolicy: {model: m}\nproblems: {source: p.jsonl}\n")
    with pytest.raises(InputError, match="name: a run has it, and a service only the settings of the reward"):
        check_settings(ServeConfig, read_settings(path))
