"""slime's reward hub, rollout log and data source, with our functions under their paths."""

# pyright: reportMissingImports=false

import asyncio
from types import SimpleNamespace

import pytest
from rows import row_of, texts_of

from cooper_rl import InputError

pytest.importorskip("slime.rollout.rm_hub", reason="slime is not installed")

PATHS = {
    "custom_rm_path": "cooper_rl.adapters.slime.reward",
    "custom_rollout_log_function_path": "cooper_rl.adapters.slime.end_of_rollout",
}


def samples_of(problems, step: int = 1):
    from slime.utils.types import Sample

    found = []
    for number, problem in enumerate(problems):
        for i, text in enumerate(texts_of(problem)):
            index = 100 * step + 4 * number + i
            row = row_of(problem)
            label = row.pop("answer")
            status = Sample.Status.COMPLETED if i else Sample.Status.TRUNCATED
            sample = Sample(group_index=10 * step + number, index=index, response=text, label=label, status=status)
            sample.metadata = row
            found.append(sample)
    return found


@pytest.mark.parametrize("groups", [False, True])
def test_a_rollout_is_scored_and_its_end_trains(service, problems, groups):
    from slime.rollout.rm_hub import async_rm, batched_async_rm

    args = SimpleNamespace(group_rm=groups, **PATHS)
    samples = samples_of(problems)

    async def run():
        if not groups:
            return await asyncio.gather(*(async_rm(args, sample) for sample in samples))
        parts = [samples[start : start + 4] for start in range(0, len(samples), 4)]
        return [reward for part in parts for reward in await batched_async_rm(args, part)]

    rewards = asyncio.run(run())
    assert len(rewards) == 32
    assert all(0 < reward < 1 for reward in rewards)
    _end(args, samples[:16])  # the rest was filtered out
    assert service.last_step == 1
    kept = [str(sample.group_index) for sample in samples[:16:4]]
    assert {pair.problem_id for pair in service.update(1, keep=kept).pairs} == {problem_id(p) for p in problems[:4]}


def problem_id(problem) -> str:
    from cooper_rl.adapters.served import read_row

    return read_row(row_of(problem), "")[0].id


def _end(args, samples) -> None:
    from slime.utils.misc import load_function

    assert load_function(args.custom_rollout_log_function_path)(0, args, samples, None, 1.0) is False


def test_the_data_source_saves_and_loads_both(service, problems, tmp_path):
    from slime.rollout.rm_hub import async_rm
    from slime.utils.misc import load_function

    args = SimpleNamespace(rollout_global_dataset=False, save=str(tmp_path), load=str(tmp_path), **PATHS)
    args.prompt_data, args.buffer_filter_path = None, None
    source = load_function("cooper_rl.adapters.slime.CooperDataSource")(args)
    samples = samples_of(problems)
    asyncio.run(async_rm(args, samples[1]))
    _end(args, samples)
    source.save(0)
    asyncio.run(async_rm(args, samples_of(problems, 2)[1]))
    _end(args, samples)
    assert service.last_step == 2
    source.load(-1)  # a run that starts anew
    assert service.last_step == 2
    source.load(0)
    assert service.last_step == 1


def test_metadata_that_lack_something_are_told(service, problems):
    from slime.rollout.rm_hub import async_rm

    sample = samples_of(problems)[0]
    sample.metadata.pop("split")
    with pytest.raises(InputError, match="a sample's metadata has no 'split'"):
        asyncio.run(async_rm(SimpleNamespace(**PATHS), sample))
    sample.metadata = None
    with pytest.raises(InputError, match="no column 'question'"):
        asyncio.run(async_rm(SimpleNamespace(**PATHS), sample))
