"""Under bfloat16 autocast packed weights compute what autocast computes, and follow every change of the weights."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from cooper_rl.engines.cpu import linear
from cooper_rl.engines.cpu.linear import BFloat16Linear, FastLinear, has_bfloat16, use_fast_linear

pytestmark = pytest.mark.skipif(not has_bfloat16(), reason="this processor does not multiply in bfloat16")


def fast(layer: Any) -> Any:
    use_fast_linear(layer, FastLinear)
    return layer


def under_autocast(layer: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return layer(rows)


def products(layer: nn.Module, rows: torch.Tensor, gradient: torch.Tensor, autocast: bool) -> list[torch.Tensor]:
    """The output and all gradients."""
    layer.zero_grad()
    x = rows.clone().requires_grad_()
    y = under_autocast(layer, x) if autocast else layer(x)
    y.backward(gradient.to(y.dtype))
    assert x.grad is not None
    return [y.detach(), x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(64, 128), (4, 32, 128)])
def test_it_is_as_near_to_float64_as_autocast_and_gives_the_same_types(shape, bias):
    torch.manual_seed(0)
    plain = nn.Linear(128, 512, bias=bias)
    rows, gradient = torch.randn(*shape), torch.randn(*shape[:-1], 512).bfloat16().float()
    theirs = products(plain, rows, gradient, autocast=True)
    ours = products(fast(copy.deepcopy(plain)), rows, gradient, autocast=True)
    truth = products(copy.deepcopy(plain).double(), rows.double(), gradient.double(), autocast=False)
    assert [x.dtype for x in ours] == [x.dtype for x in theirs] == [torch.bfloat16] + [torch.float32] * (2 + bias)
    for mine, other, exact in zip(ours, theirs, truth, strict=True):
        error = (mine.double() - exact).norm() / exact.norm()
        assert error <= 1.1 * (other.double() - exact).norm() / exact.norm()
        assert error < 0.01


def test_weight_gradients_of_several_passes_add_up_in_float32():
    layer = fast(nn.Linear(128, 512, bias=False))
    x = torch.ones(128, 128)
    for size in (1.0, 2.0**-12):  # their sum has no bfloat16 number
        under_autocast(layer, x * size).sum().backward()
    assert layer.weight.grad is not None
    assert torch.equal(layer.weight.grad, torch.full((512, 128), 128 * (1 + 2.0**-12)))


@pytest.mark.parametrize("fused", [True, False])
def test_products_follow_an_optimizer_step(fused):
    layer = fast(nn.Linear(128, 512))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=fused)
    rows, gradient = torch.randn(64, 128), torch.randn(64, 512)
    products(layer, rows, gradient, autocast=True)
    optimizer.step()
    stepped = products(layer, rows, gradient, autocast=True)
    for found, expected in zip(stepped, products(copy.deepcopy(layer), rows, gradient, autocast=True), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("change", ["load", "in place", "another tensor"])
def test_products_follow_every_other_change_of_the_weights(change):
    layer, other, rows = fast(nn.Linear(128, 512)), nn.Linear(128, 512), torch.randn(64, 128)
    under_autocast(layer, rows)
    with torch.no_grad():
        if change == "load":
            layer.load_state_dict(other.state_dict())
        elif change == "in place":
            for mine, its in zip(layer.parameters(), other.parameters(), strict=True):
                mine.detach().copy_(its)
        else:
            layer.weight, layer.bias = other.weight, other.bias
        expected = under_autocast(fast(copy.deepcopy(other)), rows)
        assert torch.equal(under_autocast(layer, rows), expected)


def test_unchanged_weights_are_packed_once_and_go_with_their_layer(monkeypatch):
    packings = []
    monkeypatch.setattr(linear, "packed", lambda weight: packings.append(1) or weight)
    layer, rows, before = (
        fast(nn.Linear(128, 512)),
        torch.randn(64, 128, requires_grad=True),
        len(linear._copies),
    )
    for _ in range(3):
        under_autocast(layer, rows).sum().backward()
    assert len(packings) == 2  # one for each direction
    del layer
    assert len(linear._copies) == before


def test_frozen_weights_pass_the_gradient_on():
    layer = fast(nn.Linear(128, 512))
    layer.requires_grad_(False)
    x = torch.randn(64, 128, requires_grad=True)
    under_autocast(layer, x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None
    with torch.inference_mode():
        assert under_autocast(layer, x).dtype == torch.bfloat16


def test_without_autocast_float32_is_untouched():
    layer = nn.Linear(128, 512)
    layer.__class__ = BFloat16Linear  # what processors with bfloat16 get where PyTorch's float32 is fast
    x = torch.randn(64, 128)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_a_whole_model_stays_as_near_to_float32_as_under_autocast(tiny_models):
    plain = AutoModelForCausalLM.from_pretrained(tiny_models / "policy").eval()
    tokens = torch.randint(0, 40, (64, 60))
    gradients = {}
    for name, autocast in (("float32", False), ("autocast", True), ("ours", True)):
        model = fast(copy.deepcopy(plain)) if name == "ours" else copy.deepcopy(plain)
        if name == "ours":
            assert any(isinstance(module, FastLinear) for module in model.modules())
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = model(tokens, labels=tokens).loss
        loss.backward()
        gradients[name] = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    errors = {name: (found - gradients["float32"]).norm() for name, found in gradients.items()}
    assert errors["ours"] < 1.2 * errors["autocast"]
