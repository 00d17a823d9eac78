"""The work that every engine gets: the same model, prompts, group size and number of tokens."""

import argparse
import tempfile
from pathlib import Path

import cooper_lab.arithmetic
from cooper_lab.arithmetic.problems import arithmetic_problems

EMBEDDED = "embedded"
ASSETS = Path(cooper_lab.arithmetic.__file__).parent / "assets"
PREAMBLE = (
    "Solve the problem. Write down one short step for every operation, keep track of the intermediate results, and "
    "state the final answer at the end of your solution.\n"
)
"""Makes the prompts for a real model about as long as those of word problems."""


def arguments(description: str | None, *engines: str) -> argparse.ArgumentParser:
    """The options that all candidates share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=engines)
    parser.add_argument("--model", default=EMBEDDED, help="a model folder, or `embedded`")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def model_folder(name: str, kind: str = "policy") -> str:
    """The folder of a model; `embedded` means the demo's."""
    return str(ASSETS / kind) if name == EMBEDDED else name


def random_model(folder: Path, width: int, kind: str = "policy") -> tuple[Path, int]:
    """A Llama of four layers with random weights and the tokenizer of the embedded model of this `kind`, with a reward
    head if that is `reward_model`. Returns its folder and parameter count.
    """
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(model_folder(EMBEDDED, kind))
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=3 * width, num_hidden_layers=4,
        num_attention_heads=width // 32, num_key_value_heads=width // 32, max_position_embeddings=2048,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    config.num_labels = 1  # of a reward head
    model = (LlamaForSequenceClassification if kind == "reward_model" else LlamaForCausalLM)(config)
    model.save_pretrained(folder / str(width))
    tokenizer.save_pretrained(folder / str(width))
    return folder / str(width), sum(parameter.numel() for parameter in model.parameters())


def prompts(count: int, model: str, seed: int = 0) -> list[str]:
    """`count` different questions."""
    preamble = "" if model == EMBEDDED else PREAMBLE
    return [preamble + problem.question + "\n" for problem in arithmetic_problems("train", count, seed)]


def even_characters(text: str) -> float:
    """A reward that is nearly free and differs between completions: the share of characters with an even code."""
    return sum(ord(character) % 2 == 0 for character in text) / max(1, len(text))


def scratch() -> Path:
    """A temporary folder for what a candidate writes."""
    return Path(tempfile.mkdtemp(prefix="bench-"))
