"""A whole training step as one compiled program: forward, backward and update.

    step = aothost.compile_step(model, loss_fn, optimizer, precision="bf16", clip_norm=1.0)
    for x, y in batches:
        loss = step(x, y)
        scheduler.step()

Parameters, buffers and optimizer states stay in PyTorch's tensors and are updated there, so model.state_dict() and
optimizer.state_dict() are true at any time. A program is compiled at the first step, and again for inputs of other
sizes, other options of the optimizer, another model.training, or other parameters that require gradients.
"""

from __future__ import annotations

import logging
import math
import operator
from typing import Any, Callable, Mapping

import torch
from torch.utils import _pytree as pytree

from . import _aothost
from .options import Options
from .program import ALIGNMENT
from .step_optimizer import States, unit_of
from .step_program import StepProgram, Whole, refuse_sparse

log = logging.getLogger("aothost")
PRECISIONS = (None, "f32", "bf16", "f16")
REQUIRES_GRAD, TRAINING = operator.attrgetter("requires_grad"), operator.attrgetter("training")
MAX_OPTIONS = 8  # programs for other options of the optimizer
SGD = ("momentum", "dampening", "weight_decay", "nesterov", "maximize")
ADAM = ("betas", "eps", "weight_decay", "amsgrad", "maximize")
HYPERPARAMETERS = {"sgd": SGD, "adam": ADAM, "adamw": ADAM}


def compile_step(
    model: torch.nn.Module,
    loss_fn: Callable[..., Any] | None,
    optimizer: torch.optim.Optimizer,
    precision: str | None = None,
    clip_norm: float | None = None,
    accumulate: int = 1,
    *,
    n_targets: int = 1,
    loss_scale: str | float | None = None,
    options: Mapping[str, Any] | None = None,
) -> "Step":
    """A function of a step's inputs that trains the model and returns the loss.

    loss_fn      called with the model's result and the last `n_targets` arguments; the others, and keyword arguments,
                 are the model's. None: the model returns its loss (a tensor, or a result with `loss`).
    optimizer    torch.optim.SGD, Adam or AdamW. Its options are read at each step, so schedulers work.
    precision    "bf16", "f16": mixed precision as torch.autocast; parameters and states keep their dtype.
    clip_norm    gradients are scaled down to this total norm, as torch.nn.utils.clip_grad_norm_.
    accumulate   calls whose gradients' mean makes one update.
    loss_scale   "dynamic", "none" or a number; with "f16" dynamic, as torch.amp.GradScaler.
    options      as of torch.compile(backend="aothost", options=..): backend, partition, budget, plugins, stages, ..
    """
    return Step(model, loss_fn, optimizer, precision, clip_norm, accumulate, n_targets, loss_scale, Options.of(options))


class Step:
    """What compile_step returns. `step(*inputs)` is a step's loss, a tensor of no graph."""

    def __init__(
        self,
        model: torch.nn.Module,
        loss_fn: Callable[..., Any] | None,
        optimizer: torch.optim.Optimizer,
        precision: str | None,
        clip_norm: float | None,
        accumulate: int,
        n_targets: int,
        loss_scale: str | float | None,
        options: Options,
    ):
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"model is a {type(model).__name__}; expected a torch.nn.Module")
        if loss_fn is not None and not callable(loss_fn):
            raise TypeError(f"loss_fn is a {type(loss_fn).__name__}; expected a function or None")
        if precision not in PRECISIONS:
            raise ValueError(f"precision is {precision!r}; expected one of None, 'bf16', 'f16'")
        if clip_norm is not None and not (clip_norm > 0 and math.isfinite(clip_norm)):
            raise ValueError(f"clip_norm is {clip_norm!r}; expected a positive number or None")
        if not isinstance(accumulate, int) or isinstance(accumulate, bool) or accumulate < 1:
            raise ValueError(f"accumulate is {accumulate!r}; expected a number of calls, at least 1")
        refuse_wrapped(model)
        self.unit = unit_of(optimizer)
        self.optimizer, self.options, self.accumulate = optimizer, options, accumulate
        self.whole = Whole(model, loss_fn, n_targets)
        refuse_sparse(self.whole)
        self.settings: dict[str, Any] = {"accumulate": accumulate}
        if precision in ("bf16", "f16"):
            self.settings["precision"] = precision
        if clip_norm is not None:
            self.settings["clip-norm"] = float(clip_norm)
        if loss_scale is not None:
            self.settings["loss-scale"] = loss_scale
        self.programs: dict[Any, Bound] = {}
        self.states = States(optimizer, self.unit)
        self.shared: dict[str, torch.Tensor] = {}  # leaves of the programs alone, by key
        self.modules = list(self.whole.modules())
        self.parameters = list(self.whole.parameters())
        self.names = {id(p): name for name, p in self.whole.named_parameters()}
        self.hyperparameters = operator.itemgetter(*HYPERPARAMETERS[self.unit])
        self.generation = 0  # of the memory of leaves
        self.trained: Any = None  # what the groups were made of
        self.groups: tuple[int, ...] = ()
        self.last: tuple[Any, Bound] | None = None
        self.calls = 0  # since the last update
        optimizer_parameters(optimizer, self.names)
        self.states.divide()

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        tensors, layout = flatten(args, kwargs)
        trained = (
            list(map(REQUIRES_GRAD, self.parameters)),
            [(len(g["params"]), self.hyperparameters(g)) for g in self.optimizer.param_groups],
        )
        if trained != self.trained or not self.states.is_current():
            self.regroup(trained)
        modes = list(map(TRAINING, self.modules))
        if self.last is not None and self.last[0] == (layout, modes):
            bound = self.last[1]
        else:
            bound = self.program_for(layout, modes, tensors, args, kwargs)
            self.last = ((layout, modes), bound)
        bound.settle(self)
        lr = self.states.rate()
        loss = bound.step(tensors, lr)
        self.calls += 1
        if self.calls == self.accumulate:
            self.calls = 0
            if self.accumulate > 1:
                bound.program.apply(lr)
            self.states.after_update()
            self.optimizer._opt_called = True  # type: ignore[attr-defined]  # what schedulers look at
        bound.after_step()
        return loss

    def regroup(self, trained: Any) -> None:
        """Other parameters are trained, by other options, or from another state than the last step's."""
        optimizer_parameters(self.optimizer, self.names)
        self.groups = self.states.divide()
        self.trained, self.last = trained, None
        self.generation += 1

    def program_for(
        self, layout: Any, modes: list[bool], tensors: list[torch.Tensor], args: Any, kwargs: Any
    ) -> "Bound":
        requires_grad, options = (tuple(t) for t in self.trained)
        key = (layout, tuple(modes), requires_grad, self.groups, options)
        bound = self.programs.get(key)
        if bound is not None:
            return bound
        changed = {k[4] for k in self.programs if k[:4] == key[:4]}
        if len(changed) >= MAX_OPTIONS:
            raise RuntimeError(
                f"the optimizer's options have changed {len(changed)} times, and each compiles a program: only lr "
                "may change at each step (of schedulers that move momentum: cycle_momentum=False)"
            )
        self.whole.rebuild = rebuild_of(args, kwargs)
        program = StepProgram(
            self.whole,
            tensors,
            optimizer_parameters(self.optimizer, self.names),
            self.unit,
            self.states.unit_options(self.names),
            self.options,
            self.settings,
        )
        bound = self.programs[key] = Bound(program, self)
        return bound


class Bound:
    """A program whose leaves are PyTorch's memory."""

    def __init__(self, source: StepProgram, step: Step):
        self.source, self.program = source, source.program
        self.generation = -1
        self.updated = source.updated(step.states)
        self.tensors = [tensor for _, tensor in source.leaves]
        self.written: list[torch.Tensor] = []
        self.places = b""
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.loss = source.loss

    def settle(self, step: Step) -> None:
        """Leaves that have moved since the last step are bound to where they are."""
        if self.generation == step.generation and _aothost.pointers(self.tensors) == self.places:
            if self.copies:
                torch._foreach_copy_([c for _, c in self.copies], [t for t, _ in self.copies])
            return
        self.bind(step)

    def bind(self, step: Step) -> None:
        self.copies = []
        step.states.prepare(self.updated)
        self.tensors = [tensor for _, tensor in self.source.leaves]
        for key, tensor in self.source.leaves:
            self.lend(key, tensor)
        for key, tensor in step.states.leaves(self.updated):
            self.lend(key, tensor)
        for key, tensor in step.states.shared_leaves():
            if self.source.has(key):
                self.program.bind(key, tensor)
        for key, like in self.source.private_leaves(self.updated):
            if key not in step.shared:
                step.shared[key] = like()
            self.program.bind(key, step.shared[key])
        if self.copies:
            log.warning(
                "%d parameters, buffers or states are not at a multiple of %d bytes and are copied in and out at each "
                "step; p.data = p.data.clone() moves one",
                len(self.copies),
                ALIGNMENT,
            )
        buffers = [tensor for key, tensor in self.source.leaves if key.startswith("buffer.")]
        self.written = [*(p for _, p in self.updated), *buffers]  # what a graph of autograd may have saved
        self.places = _aothost.pointers(self.tensors)
        self.generation = step.generation

    def lend(self, key: str, tensor: torch.Tensor) -> None:
        if tensor.data_ptr() % ALIGNMENT:
            copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            copy.copy_(tensor.detach())
            self.copies.append((tensor.detach(), copy))
            tensor = copy
        self.program.bind(key, tensor)

    def step(self, tensors: list[torch.Tensor], lr: float) -> torch.Tensor:
        loss = torch.empty_like(self.loss)
        seed = int(torch.empty((), dtype=torch.int64).random_()) if self.source.draws else -1
        self.program.step(tensors, loss, lr, seed)
        return loss

    def after_step(self) -> None:
        if self.copies:
            torch._foreach_copy_([t for t, _ in self.copies], [c for _, c in self.copies])
        torch.autograd.graph.increment_version(self.written)


# ---- inputs ----


def flatten(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[torch.Tensor], Any]:
    """The tensors among the arguments, and all else that a program depends on."""
    values = [*args, *kwargs.values()] if kwargs else list(args)
    if all([isinstance(v, torch.Tensor) for v in values]):
        return values, (len(args), tuple(kwargs), tuple([(v.shape, v.dtype) for v in values]))
    leaves, spec = pytree.tree_flatten((args, kwargs))
    layout: list[Any] = []
    for v in leaves:
        if isinstance(v, torch.Tensor):
            layout.append((v.shape, v.dtype))
        elif v is None or isinstance(v, (bool, int, float, str, torch.dtype)):
            layout.append((type(v), v))
        elif callable(v):
            raise TypeError("a step takes inputs, no closure: it computes the loss itself")
        else:
            raise TypeError(f"an input of a step is a {type(v).__name__}; expected tensors, numbers, texts or lists")
    return [v for v in leaves if isinstance(v, torch.Tensor)], (repr(spec), tuple(layout))


def rebuild_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
    """From tensors to arguments as these are."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    is_tensor = [isinstance(v, torch.Tensor) for v in leaves]
    constants = [None if t else v for t, v in zip(is_tensor, leaves)]

    def rebuild(tensors: Any) -> Any:
        rest = iter(tensors)
        return pytree.tree_unflatten([next(rest) if t else c for t, c in zip(is_tensor, constants)], spec)

    return rebuild


# ---- parameter groups ----


def optimizer_parameters(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> list[torch.Tensor]:
    """Those that the optimizer updates."""
    found = []
    for g, group in enumerate(optimizer.param_groups):
        for i, p in enumerate(group["params"]):
            if id(p) not in names:
                raise ValueError(
                    f"parameter {i} of the optimizer's group {g}, of shape {list(p.shape)}, is none of the model's: "
                    "make the optimizer with model.parameters(); of a loss with parameters, pass the module as loss_fn"
                )
            if p.requires_grad:
                found.append(p)
    return found


def refuse_wrapped(model: torch.nn.Module) -> None:
    name = type(model).__name__
    if name in ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"):
        raise NotImplementedError(
            f"{name} exchanges gradients in hooks of the autograd engine, which a compiled step does not run: "
            "pass the model inside it, or use torch.compile(backend='aothost')"
        )
    for path, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            raise NotImplementedError(f"{path or name} has backward hooks, which a compiled step does not run")
    for path, p in model.named_parameters():
        kind = next((t.__name__ for t in (type(p), type(p.data)) if t not in (torch.nn.Parameter, torch.Tensor)), None)
        if kind or p.device.type != "cpu":
            what = f"a {kind}" if kind else f"on the device {p.device}"
            raise NotImplementedError(f"{path} is {what}; a compiled step has plain tensors of the CPU")
        if p._backward_hooks or p._post_accumulate_grad_hooks:
            raise NotImplementedError(f"{path} has gradient hooks, which a compiled step does not run")
