"""oneDNN's linear layers equal PyTorch's, forward and backward, and a learner trains the same with them."""

import copy

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from cooper_rl.engines.cpu.linear import FastLinear, PackedLinear, has_onednn, use_fast_linear

pytestmark = pytest.mark.skipif(not has_onednn(), reason="this PyTorch has no oneDNN")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(64, 128), (4, 32, 128), (1, 128)])
def test_outputs_and_gradients_agree_with_float64(shape, bias):
    torch.manual_seed(0)
    plain = nn.Linear(128, 512, bias=bias)
    fast, exact = copy.deepcopy(plain), copy.deepcopy(plain).double()
    use_fast_linear(fast, FastLinear)
    assert isinstance(fast, FastLinear)
    rows, gradient = torch.randn(*shape), torch.randn(*shape[:-1], 512)
    found = []
    for layer, dtype in ((plain, torch.float32), (fast, torch.float32), (exact, torch.float64)):
        x = rows.clone().to(dtype).requires_grad_()
        y = layer(x)
        y.backward(gradient.to(dtype))
        assert x.grad is not None
        found.append([y.detach(), x.grad, *(p.grad for p in layer.parameters())])
    for ours, theirs, truth in zip(found[1], found[0], found[2], strict=True):
        error = (ours.double() - truth).abs().max()
        assert error <= 2 * (theirs.double() - truth).abs().max() + 1e-5


def test_gradients_of_frozen_parts_are_not_computed():
    layer = nn.Linear(128, 512)
    use_fast_linear(layer, FastLinear)
    layer.weight.requires_grad_(False)
    x = torch.randn(64, 128, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    assert x.grad is not None
    with torch.no_grad():
        assert layer(x).grad_fn is None


def test_a_whole_model_keeps_its_parameters_and_its_results(tiny_models):
    plain = AutoModelForCausalLM.from_pretrained(tiny_models / "policy").eval()
    fast = copy.deepcopy(plain)
    names = {name: id(parameter) for name, parameter in fast.named_parameters()}
    use_fast_linear(fast, FastLinear)
    assert {name: id(parameter) for name, parameter in fast.named_parameters()} == names
    assert fast.state_dict().keys() == plain.state_dict().keys()
    tokens = torch.randint(0, 40, (64, 60))
    gradients = []
    for model in (plain, fast):
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradient, gradients[1][name], rtol=1e-3, atol=1e-6), name


def test_autocast_and_other_types_stay_with_pytorch():
    layer = nn.Linear(128, 512)
    use_fast_linear(layer, FastLinear)
    x = torch.randn(64, 128)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    assert layer.double()(x.double()).dtype == torch.float64
    untouched = nn.Linear(128, 512)
    use_fast_linear(untouched, nn.Linear)
    assert type(untouched) is nn.Linear


@pytest.mark.parametrize("layer", [nn.Linear, FastLinear])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(1, 512), (40, 512), (1, 8192)])
def test_packed_layers_are_the_layers_side_by_side(dtype, rows, width, layer):
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(256, width), nn.Linear(256, 64)])
    use_fast_linear(layers, layer)
    x = torch.randn(rows, 256)
    side_by_side = PackedLinear([layers[0], layers[1]], dtype)(x)  # pyright: ignore[reportArgumentType]
    assert side_by_side.dtype == dtype
    exact = torch.cat([each(x) for each in layers], dim=1)
    assert (side_by_side - exact).abs().max() < (1e-5 if dtype == torch.float32 else 0.03)
