"""Samples a batch of completions of equal or of very unequal lengths. Engines: cooper, generate, vllm.

    python benchmarks/speed/sampler.py cooper --model MODEL --batch 128 --n 8 --new-tokens 64 --lengths equal

With `equal` lengths every completion has `--new-tokens` tokens. With `unequal` lengths each token of a random fiftieth
of the vocabulary ends a completion, so lengths are spread geometrically up to `--new-tokens`. `--n` completions share a
prompt. With `--at-once 128`, cooper and vllm hold at most 128 completions at a time, and others enter as they end. With
`--dtype bfloat16`, both multiply in bfloat16.
"""

import os
import random
from typing import Any

from measure import Meter, report
from workload import arguments, model_folder, prompts


def options_parser():
    parser = arguments(__doc__, "cooper", "generate", "vllm")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--at-once", type=int, default=0, help="most completions under way; 0: all (vllm: 256)")
    parser.add_argument("--lengths", choices=["equal", "unequal"], default="equal")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    return parser


def stop_ids(options, vocabulary: int) -> list[int]:
    """The tokens that end a completion: a random fiftieth of the vocabulary, or none."""
    if options.lengths == "equal":
        return []
    return random.Random(options.seed).sample(range(vocabulary), max(1, vocabulary // 50))


def cooper(options) -> None:
    from cooper_rl.engines.config import SamplingParams
    from cooper_rl.engines.local.sampler import NativeSampler

    folder, autocast = model_folder(options.model), "bfloat16" if options.dtype == "bfloat16" else "off"
    sampler = NativeSampler.from_folder(folder, device="cpu", max_rows=options.at_once, autocast=autocast)
    texts = prompts(options.batch // options.n, options.model, options.seed)
    encoded = [sampler.tokenizer.encode(text) for text in texts]
    stops = tuple(stop_ids(options, len(sampler.tokenizer)))
    least = options.new_tokens if options.lengths == "equal" else 0
    params = SamplingParams(max_tokens=options.new_tokens, min_tokens=least, stop_token_ids=stops)
    sampler.sample(encoded, 1, SamplingParams(max_tokens=2), seed=0)
    meter = Meter()
    with meter.measure():
        samples = sampler.sample(encoded, options.n, params, seed=options.seed)
    report(meter, len(samples.logprobs))


def generate(options) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = model_folder(options.model)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = prompts(options.batch // options.n, options.model, options.seed)
    repeated = [text for text in texts for _ in range(options.n)]
    batch = tokenizer(repeated, return_tensors="pt", padding=True, padding_side="left")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    stops = stop_ids(options, len(tokenizer))
    how = {"do_sample": True, "top_k": 0, "max_new_tokens": options.new_tokens, "pad_token_id": tokenizer.pad_token_id}
    if stops:
        how["eos_token_id"] = [tokenizer.eos_token_id, *stops]
    else:
        how["min_new_tokens"] = options.new_tokens
    torch.manual_seed(options.seed)
    meter = Meter()
    with torch.inference_mode():
        model.generate(**{name: tensor[:1] for name, tensor in inputs.items()}, do_sample=True, max_new_tokens=2)
        with meter.measure():
            output = model.generate(**inputs, **how)
    new = output[:, inputs["input_ids"].shape[1] :].tolist()
    ends = set(stops) | {tokenizer.eos_token_id}
    lengths = [next((i + 1 for i, token in enumerate(row) if token in ends), len(row)) for row in new]
    report(meter, sum(lengths) if stops else len(new) * options.new_tokens)


def vllm(options) -> None:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    from vllm import LLM, SamplingParams  # pyright: ignore[reportMissingImports] - in an environment of its own

    most = options.at_once or 256
    engine = LLM(
        model_folder(options.model), dtype=options.dtype, enforce_eager=True, max_model_len=1024, max_num_seqs=most
    )
    tokenizer = engine.get_tokenizer()
    texts = prompts(options.batch // options.n, options.model, options.seed)
    stops = stop_ids(options, len(tokenizer))
    least = options.new_tokens if options.lengths == "equal" else 0
    params = SamplingParams(
        n=options.n, temperature=1.0, max_tokens=options.new_tokens, min_tokens=least, stop_token_ids=stops,
        seed=None, detokenize=False,
    )  # fmt: skip
    engine.generate(texts[:1], SamplingParams(max_tokens=2), use_tqdm=False)
    meter = Meter()
    with meter.measure():
        outputs = engine.generate(texts, params, use_tqdm=False)
    report(meter, sum(len(completion.token_ids) for output in outputs for completion in output.outputs))


if __name__ == "__main__":
    given = options_parser().parse_args()
    if given.engine == "generate" and (given.at_once or given.dtype != "float32"):
        raise SystemExit("`generate` is measured in float32, and lets no completions enter a batch under way")
    if given.engine != "vllm":
        import torch

        torch.set_num_threads(given.threads)
    {"cooper": cooper, "generate": generate, "vllm": vllm}[given.engine](given)
