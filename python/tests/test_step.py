"""compile_step against the same loop in eager PyTorch: losses, parameters, buffers and optimizer states."""

from __future__ import annotations

import copy
import functools
from typing import Any, Callable

import pytest
import torch
from torch import nn

import aothost

F = nn.functional
STEPS = 20


def mlp(dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).to(dtype)


def conv_net() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ).double()


def vectors(i: int, n: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(i)
    return torch.randn(n, 8, generator=g, dtype=torch.float64), torch.randint(4, (n,), generator=g)


def images(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(i)
    return torch.randn(4, 3, 8, 8, generator=g, dtype=torch.float64), torch.randint(4, (4,), generator=g)


Make = Callable[[Any], torch.optim.Optimizer]
SETTINGS: dict[str, Make] = {
    "sgd": functools.partial(torch.optim.SGD, lr=0.05),
    "sgd_decay_maximize": functools.partial(torch.optim.SGD, lr=0.01, weight_decay=0.1, maximize=True),
    "sgd_momentum": functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.01),
    "sgd_dampening": functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9, dampening=0.3),
    "sgd_nesterov": functools.partial(torch.optim.SGD, lr=0.02, momentum=0.9, nesterov=True),
    "adam": functools.partial(torch.optim.Adam, lr=0.01),
    "adam_options": functools.partial(
        torch.optim.Adam, lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1, amsgrad=True
    ),
    "adamw": functools.partial(torch.optim.AdamW, lr=0.01),
    "adamw_options": functools.partial(torch.optim.AdamW, lr=0.01, weight_decay=0.2, amsgrad=True, maximize=True),
}


class Pair:
    """A model and its copy, each with an optimizer of its own: the copy is trained in eager."""

    def __init__(
        self, model: nn.Module, make: Make, loss_fn: Any = F.cross_entropy, clip: float | None = None, **given: Any
    ):
        self.model, self.eager = model, copy.deepcopy(model)
        self.optimizer = make([p for p in model.parameters()])
        self.eager_optimizer = make([p for p in self.eager.parameters()])
        self.loss_fn, self.clip, self.tolerance = loss_fn, clip, 1e-9
        self.step = aothost.compile_step(model, loss_fn, self.optimizer, clip_norm=clip, **given)

    def eager_step(self, batches: Any) -> list[torch.Tensor]:
        self.eager_optimizer.zero_grad()
        losses = []
        for x, y in batches:
            loss = self.loss_fn(self.eager(x), y)
            (loss / len(batches)).backward()
            losses.append(loss.detach())
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.eager.parameters(), self.clip)
        self.eager_optimizer.step()
        return losses

    def run(self, data: Any, steps: int = STEPS, first: int = 0, n: int = 1) -> None:
        for i in range(first, first + steps):
            batches = [data(n * i + k) for k in range(n)]
            ours = [self.step(x, y) for x, y in batches]
            torch.testing.assert_close(ours, self.eager_step(batches), rtol=self.tolerance, atol=self.tolerance)
        self.compare()

    def compare(self) -> None:
        near = functools.partial(torch.testing.assert_close, rtol=self.tolerance, atol=self.tolerance)
        near(dict(self.model.state_dict()), dict(self.eager.state_dict()))
        ours, theirs = self.optimizer.state_dict(), self.eager_optimizer.state_dict()
        near(ours["state"], theirs["state"])
        assert [list(s) for s in ours["state"].values()] == [list(s) for s in theirs["state"].values()]


@pytest.mark.parametrize("name", SETTINGS)
def test_optimizers(name: str) -> None:
    Pair(mlp(), SETTINGS[name]).run(vectors)


@pytest.mark.parametrize("name", ["sgd_momentum", "adamw"])
def test_batch_norm(name: str) -> None:
    Pair(conv_net(), SETTINGS[name]).run(images)


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 33))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x


@pytest.mark.parametrize("options", [{}, {"momentum": 0.5}, {"momentum": 0.5, "nesterov": True}])
def test_same_bits(options: dict[str, Any]) -> None:
    """Gradients of one product, factors that are powers of two: nothing is rounded twice, and no bit differs."""
    make = functools.partial(torch.optim.SGD, lr=0.0625, **options)
    pair = Pair(Product(), make, lambda out, y: (out * y).sum())
    g = torch.Generator().manual_seed(0)
    pair.tolerance = 1e-4
    for _ in range(STEPS):
        pair.run(lambda i: (torch.randn(33, generator=g), torch.randn(33, generator=g)), 1)
    pair.tolerance = 0
    pair.compare()


def test_clip_and_accumulate() -> None:
    Pair(mlp(), SETTINGS["adamw"], clip=0.1, accumulate=3).run(vectors, 7, n=3)


def test_shapes_share_states_and_sums() -> None:
    pair = Pair(mlp(), SETTINGS["adam"], accumulate=2)
    pair.run(lambda i: vectors(i, 4 + 2 * (i % 3)), 12, n=2)
    assert len(pair.step.programs) == 3


def test_scheduler() -> None:
    pair = Pair(mlp(), SETTINGS["adamw"])
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, 10) for o in (pair.optimizer, pair.eager_optimizer)]
    for i in range(10):
        pair.run(vectors, 1, i)
        for schedule in schedules:
            schedule.step()
    assert pair.optimizer.param_groups[0]["lr"] < 1e-6


@pytest.mark.parametrize("name", ["sgd_dampening", "adamw_options"])
def test_goes_on_from_states(name: str) -> None:
    """Eager steps before, between and after; a state that is loaded; the optimizer's own step counts on."""
    pair = Pair(mlp(), SETTINGS[name])
    pair.run(vectors, 5)
    for model, optimizer in ((pair.model, pair.optimizer), (pair.eager, pair.eager_optimizer)):
        for i in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(vectors(100 + i)[0]), vectors(100 + i)[1]).backward()
            optimizer.step()
    pair.run(vectors, 5, 5)
    saved = copy.deepcopy((pair.model.state_dict(), pair.optimizer.state_dict()))
    pair.run(vectors, 5, 10)
    for model, optimizer in ((pair.model, pair.optimizer), (pair.eager, pair.eager_optimizer)):
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(copy.deepcopy(saved[1]))
    pair.run(vectors, 5, 10)


def test_frozen_and_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
            self.frozen, self.unused = nn.Linear(8, 4), nn.Linear(2, 2)
            self.second.weight = self.first.weight
            self.frozen.weight.requires_grad_(False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.frozen(self.second(torch.tanh(self.first(x))))

    torch.manual_seed(4)
    pair = Pair(Tied().double(), SETTINGS["adamw"])
    pair.run(vectors, 10)
    for model in (pair.model, pair.eager):
        model.second.bias.requires_grad_(False)
        model.second.bias.grad = None
    pair.run(vectors, 5, 10)


def grouped(make: Make, **other: Any) -> Make:
    """Biases and norms have options of their own, and a rate of their own that a scheduler moves alone."""

    def build(parameters: Any) -> torch.optim.Optimizer:
        vectors = {"params": [p for p in parameters if p.ndim < 2], **other}
        return make([{"params": [p for p in parameters if p.ndim >= 2]}, vectors])

    return build


@pytest.mark.parametrize(
    "name, other",
    [
        ("adamw", {"weight_decay": 0.0, "lr": 0.003}),
        ("adam", {"betas": (0.8, 0.9), "amsgrad": True}),
        ("sgd", {"momentum": 0.9, "dampening": 0.1}),
        ("sgd_nesterov", {"lr": 0.0, "weight_decay": 0.1}),
    ],
)
def test_groups(name: str, other: dict[str, Any]) -> None:
    pair = Pair(mlp(), grouped(SETTINGS[name], **other))
    pair.run(vectors, 10)
    for optimizer in (pair.optimizer, pair.eager_optimizer):
        optimizer.param_groups[1]["lr"] *= 0.5
    pair.run(vectors, 10, 10)


def test_parameters_at_different_steps() -> None:
    """A layer that is frozen for a while has made fewer steps than the others: Adam's corrections are its own."""
    pair = Pair(mlp(), SETTINGS["adam"])
    layers = (pair.model[2], pair.eager[2])
    for freeze in (True, False, True, False):
        for layer in layers:
            layer.requires_grad_(not freeze)
            layer.zero_grad()
        pair.run(vectors, 4)
    assert pair.optimizer.state[layers[0].bias]["step"] == 8


def test_new_group() -> None:
    pair = Pair(mlp(), lambda p: torch.optim.AdamW(p[2:], lr=0.01))
    pair.run(vectors, 4)
    for model, optimizer in ((pair.model, pair.optimizer), (pair.eager, pair.eager_optimizer)):
        model.zero_grad()
        optimizer.add_param_group({"params": list(model[0].parameters()), "lr": 0.02})
    pair.run(vectors, 4, 4)


def test_training_mode() -> None:
    pair = Pair(conv_net(), SETTINGS["sgd"])
    pair.run(images, 3)
    pair.model.eval()
    pair.eager.eval()
    pair.run(images, 3, 3)


def test_parameter_that_moves() -> None:
    pair = Pair(mlp(), SETTINGS["adamw"])
    pair.run(vectors, 2)
    pair.model[0].weight.data = pair.model[0].weight.data.clone()
    pair.run(vectors, 2, 2)


def test_unaligned_memory(caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair(mlp(), SETTINGS["adam"])
    weight = pair.model[0].weight
    weight.data = torch.empty(weight.numel() + 1, dtype=weight.dtype)[1:].view_as(weight).copy_(weight.detach())
    pair.run(vectors, 5)
    assert "copied in and out" in caplog.text


def test_dropout_follows_manual_seed() -> None:
    def losses(seed: int) -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 4)).double()
        step = aothost.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.0))
        torch.manual_seed(seed)
        return [float(step(*vectors(0))) for _ in range(4)]

    first = losses(1)
    assert first == losses(1) != losses(2)
    assert len(set(first)) == 4


def test_no_draw_leaves_the_generator_alone() -> None:
    pair = Pair(mlp(), SETTINGS["sgd"])
    state = torch.get_rng_state()
    pair.step(*vectors(0))
    before = torch.get_rng_state()
    pair.step(*vectors(1))
    assert torch.equal(torch.get_rng_state(), before) and torch.equal(state, before)


def test_bf16() -> None:
    """As near to float32 as eager's autocast is."""
    model = mlp(torch.float32)
    plain, cast = copy.deepcopy(model), copy.deepcopy(model)
    optimizers = [SETTINGS["adamw"](m.parameters()) for m in (model, plain, cast)]
    step = aothost.compile_step(model, F.cross_entropy, optimizers[0], precision="bf16")
    ours, exact, theirs = [], [], []
    for i in range(STEPS):
        x, y = vectors(i)
        x = x.float()
        ours.append(step(x, y))
        for m, o, losses, on in ((plain, optimizers[1], exact, False), (cast, optimizers[2], theirs, True)):
            o.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=on):
                loss = F.cross_entropy(m(x), y)
            loss.backward()
            o.step()
            losses.append(loss.detach())
    error, eager_error = (torch.stack(a).sub(torch.stack(exact)).abs().max() for a in (ours, theirs))
    assert 0 < error <= 2 * eager_error
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_f16_skips_a_step_with_an_infinity() -> None:
    """As torch.amp.GradScaler: parameters and counts stay, the scale is halved, and training goes on."""
    model = mlp(torch.float32)
    optimizer = SETTINGS["adamw"](model.parameters())
    step = aothost.compile_step(model, F.cross_entropy, optimizer, precision="f16")
    x, y = vectors(0)
    before = copy.deepcopy(model.state_dict())
    step(x.float() / 0, y)
    torch.testing.assert_close(dict(model.state_dict()), dict(before), rtol=0, atol=0)
    assert optimizer.state[model[0].weight]["step"] == 0
    assert step.shared["state.loss-scale.scale"] == 32768
    losses = [float(step(x.float(), y)) for _ in range(10)]
    assert losses[-1] < losses[0] and optimizer.state[model[0].weight]["step"] == 10


def test_strides_of_inputs_and_parameters() -> None:
    pair = Pair(conv_net().to(memory_format=torch.channels_last), SETTINGS["adam"])
    pair.run(lambda i: (images(i)[0].to(memory_format=torch.channels_last), images(i)[1]), 3)
    pair.run(images, 3, 3)
    pair.run(lambda i: (images(i)[0].transpose(2, 3), images(i)[1]), 3, 6)
    assert len(pair.step.programs) == 1
    assert pair.model[0].weight.is_contiguous(memory_format=torch.channels_last)


def test_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(5)
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    model = transformers.GPT2LMHeadModel(config).double()
    eager = copy.deepcopy(model)
    # The loss is float32. Gradients of key biases are rounding errors, which Adam makes as large as any other: eps
    # keeps them small.
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01, eps=1e-3) for m in (model, eager)]
    step = aothost.compile_step(model, None, optimizers[0], clip_norm=1.0)
    for i in range(STEPS):
        ids = torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(i))
        loss = step(input_ids=ids, labels=ids)
        optimizers[1].zero_grad()
        expected = eager(input_ids=ids, labels=ids).loss
        expected.backward()
        nn.utils.clip_grad_norm_(eager.parameters(), 1.0)
        optimizers[1].step()
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(dict(model.state_dict()), dict(eager.state_dict()), rtol=1e-4, atol=1e-5)
    ours, theirs = (o.state_dict()["state"] for o in optimizers)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_versions_are_counted() -> None:
    """A graph of autograd that has saved a parameter notices that the step has changed it."""
    pair = Pair(mlp(), SETTINGS["sgd"])
    pair.step(*vectors(0))
    loss = F.cross_entropy(pair.model(vectors(0)[0]), vectors(0)[1])
    pair.step(*vectors(0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- bad input ----


def refused(match: str, error: type[Exception] = Exception, **given: Any) -> None:
    model = given.pop("model", None) or mlp()
    optimizer = given.pop("optimizer", None) or SETTINGS["sgd"](model.parameters())
    inputs = given.pop("inputs", None) or vectors(0)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(error, match=match):
        aothost.compile_step(model, given.pop("loss_fn", F.cross_entropy), optimizer, **given)(*inputs)
    torch.testing.assert_close(dict(model.state_dict()), dict(before), rtol=0, atol=0)


def test_refuses_optimizers() -> None:
    class Mine(torch.optim.AdamW):
        pass

    model = mlp()
    other = torch.optim.Adagrad(model.parameters())
    refused("SGD, Adam and AdamW, not of Adagrad", TypeError, model=model, optimizer=other)
    refused("not of LBFGS", TypeError, model=model, optimizer=torch.optim.LBFGS(model.parameters()))
    refused("subclass of Adam.*pass Adam", TypeError, model=model, optimizer=Mine(model.parameters()))
    differentiable = torch.optim.SGD(model.parameters(), differentiable=True)
    refused("differentiable=True", TypeError, model=model, optimizer=differentiable)
    hooked = torch.optim.SGD(model.parameters())
    hooked.register_step_post_hook(lambda *a: None)
    refused("step hooks", TypeError, model=model, optimizer=hooked)
    refused("is none of the model's", ValueError, optimizer=torch.optim.SGD(mlp().parameters()))


def test_refuses_models() -> None:
    sparse = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.LazyLinear(4))
    sparse(torch.zeros(1, 2, dtype=torch.int64))
    refused("model.0 .Embedding. has sparse gradients", NotImplementedError, model=sparse)
    hooked = mlp()
    hooked[0].weight.register_hook(lambda g: g * 2)
    refused("0.weight has gradient hooks", NotImplementedError, model=hooked)
    hooked = mlp()
    hooked[0].register_full_backward_hook(lambda *a: None)
    refused("0 has backward hooks", NotImplementedError, model=hooked)


def test_refuses_devices_and_subclasses() -> None:
    cases = ((mlp().to("meta"), "0.weight is on the device meta"), (nn.LazyLinear(4), "weight is a Uninit"))
    for model, match in cases:
        with pytest.raises(NotImplementedError, match=match):
            aothost.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters()))


def test_refuses_double_backward() -> None:
    def penalty(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(out, y)
        (gradient,) = torch.autograd.grad(loss, out, create_graph=True)
        return loss + gradient.square().sum()

    refused(r"torch.autograd.grad: .*\(double backward\)", NotImplementedError, loss_fn=penalty)


def test_refuses_inputs_that_the_model_changes() -> None:
    class Changes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4).double()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.view(-1)[1:].mul_(2)
            return self.layer(x)

    refused("changes tensor 0 of the step's inputs in place", NotImplementedError, model=Changes())


def test_refuses_arguments() -> None:
    refused("precision is 'fp8'", ValueError, precision="fp8")
    refused("clip_norm is -1", ValueError, clip_norm=-1)
    refused("accumulate is 0", ValueError, accumulate=0)
    refused("did you mean 'budget'", ValueError, options={"budgt": "1GiB"})
    refused("no closure", TypeError, inputs=[lambda: None])
    refused(r"loss has shape \[6\]", ValueError, loss_fn=functools.partial(F.cross_entropy, reduction="none"))
    refused("loss is a float", TypeError, loss_fn=lambda out, y: 1.0)
    refused("depends on no parameter", ValueError, loss_fn=lambda out, y: out.detach().sum())
