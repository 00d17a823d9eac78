"""From settings to a sampler with vLLM engines."""

from cooper_rl.engines.cluster.inference.handover import HandoverFromRanks
from cooper_rl.engines.cluster.samplers.vllm import VllmSamplers
from cooper_rl.engines.cluster.session import Session
from cooper_rl.engines.vllm.build import sampler_with, server
from cooper_rl.engines.vllm.sampler import VllmSampler


def build_sampler(config: VllmSamplers, session: Session, model: str) -> VllmSampler:
    """Start the engines with the model of a folder or the hub, or find the server that has been started.

    Raises InputError for a model, a vLLM or a server that does not serve.
    """
    config.check_model(model)
    backend = config.transfer if config.transfer != "auto" else "nccl" if session.on_gpus else "gloo"
    if config.url is not None:
        engine = server(model, config, backend)
        return sampler_with(engine, model, HandoverFromRanks(lambda: engine, engine.dtype, backend, config.timeout_s))
    engines = session.engines
    assert engines is not None  # the session has reserved what `VllmSamplers.processes` asks for
    engines.start(model, config, backend)
    return sampler_with(engines, model, HandoverFromRanks(engines.receiver, engines.dtype, backend, config.timeout_s))
