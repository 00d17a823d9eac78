"""Measures one GRPO step: sampling, rewards, loss, update. Engines: cooper, trl.

    python benchmarks/speed/step.py cooper --problems 8 --n 8 --new-tokens 32 --steps 3

Every completion has exactly `--new-tokens` tokens, and the unit is a step. With `--lengths free` completions end by
themselves, after at most `--new-tokens` tokens, and the unit is a token. The reward is the rule's verdict (for TRL raw
Math-Verify, as in its `accuracy_reward`) and one more function. The loss is PPO-clip with token-mean aggregation and no
KL term. The first step is not measured. `cooper --kind cooper` adds the reward model and stage 2; if `--model` is not
the embedded model, the reward model comes from the folder `--reward-model`.
"""

import json

import torch

from measure import Meter, report
from workload import EMBEDDED, arguments, even_characters, model_folder, prompts, scratch


def options_parser():
    parser = arguments(__doc__, "cooper", "trl")
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--lengths", choices=["equal", "free"], default="equal")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--kind", choices=["rule", "cooper"], default="rule")
    parser.add_argument("--reward-model")
    parser.add_argument("--device", default="cpu")
    return parser


def least_tokens(options) -> int:
    """The number of tokens before which no completion may end."""
    return options.new_tokens if options.lengths == "equal" else 0


def report_step(meter: Meter, options, tokens: list[float], **more: float) -> None:
    """Report steps of equal lengths, or the tokens of free ones. `tokens` are those of each measured step."""
    equal = options.lengths == "equal"
    assert not equal or set(tokens) == {options.problems * options.n * options.new_tokens}, tokens
    report(meter, options.steps if equal else sum(tokens), tokens=tokens[-1], **more)


def reward(problem, completion):
    """The benchmark's reward in the form that Cooper takes."""
    return even_characters(completion.text)


def cooper(options) -> None:
    from cooper_rl import CooperTrainer, build_config

    folder = scratch()
    count = options.problems * (options.steps + 1)
    data = folder / "problems.jsonl"
    texts = prompts(count, options.model, options.seed)
    rows = [{"question": text, "answer": str(7 + number)} for number, text in enumerate(texts)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    paid = "earned" if options.kind == "cooper" else "rule"
    settings = {
        "kind": options.kind,
        "output_dir": str(folder),
        "threads": options.threads,
        "steps": options.steps + 1,
        "problems_per_step": options.problems,
        "policy": {"model": model_folder(options.model), "learning_rate": 1e-6, "device": options.device},
        "problems": {"source": str(data), "prompt": {"template": "{question}\n", "chat": False}},
        "rollout": {"n": options.n, "max_tokens": options.new_tokens, "min_tokens": least_tokens(options)},
        "algorithm": {
            "kl": None,
            "min_spread": 0.0,
            "loss": {"kind": "ppo_clip"},
            "aggregation": {"kind": "token_mean"},
        },
        "rewards": [{"kind": paid}, {"kind": "function", "function": "step:reward"}],
        "checkpoint": {"every": 0},
    }
    if options.kind == "cooper":
        reward_model = options.reward_model or model_folder(options.model, "reward_model")
        settings |= {
            "reward_model": {"model": reward_model, "max_input_tokens": 512, "device": options.device},
            "cooptimization": {"pairs": [{"kind": "on_policy"}], "replay": {"pairs_per_step": 0}},
        }
    meter, steps = Meter(), []
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.step()
        for _ in range(options.steps):
            with meter.measure():
                steps.append(trainer.step())
    shares = {name: value for name, value in steps[-1].items() if name.startswith("time/")}
    report_step(meter, options, [step["rollout/tokens"] for step in steps], **shares)


def trl(options) -> None:
    from datasets import Dataset
    from math_verify import parse, verify
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

    meter, tokens = Meter(), []

    class Measure(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step:
                self.block = meter.measure()
                self.block.__enter__()

        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step > 1:
                self.block.__exit__(None, None, None)

    def accuracy(completions, answer, **kwargs):
        pairs = zip(answer, completions, strict=True)
        return [float(verify(parse(f"${reference}$"), parse(text))) for reference, text in pairs]

    def score(completions, completion_ids, **kwargs):
        tokens.append(sum(map(len, completion_ids)))
        return [even_characters(text) for text in completions]

    config = GRPOConfig(
        output_dir=str(scratch()),
        per_device_train_batch_size=options.problems * options.n,
        num_generations=options.n,
        max_completion_length=options.new_tokens,
        generation_kwargs={"min_new_tokens": least_tokens(options), "max_new_tokens": options.new_tokens},
        max_steps=options.steps + 1,
        learning_rate=1e-6,
        beta=0.0,
        loss_type="dapo",
        temperature=1.0,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=options.device == "cpu",
        save_strategy="no",
        report_to=[],
        logging_strategy="no",
        disable_tqdm=True,
        seed=options.seed,
    )
    texts = prompts(options.problems * (options.steps + 1), options.model, options.seed)
    trainer = GRPOTrainer(
        model=model_folder(options.model),
        reward_funcs=[accuracy, score],  # pyright: ignore[reportArgumentType] - TRL takes both
        args=config,
        train_dataset=Dataset.from_dict({"prompt": texts, "answer": [str(7 + n) for n in range(len(texts))]}),
        callbacks=[Measure()],
    )
    trainer.train()
    report_step(meter, options, tokens[1:])


if __name__ == "__main__":
    given = options_parser().parse_args()
    torch.set_num_threads(given.threads)
    assert given.model != EMBEDDED or given.new_tokens <= 200
    {"cooper": cooper, "trl": trl}[given.engine](given)
