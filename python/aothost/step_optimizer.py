"""An optimizer of torch.optim as a unit of aothost: its rule, its options, and its states in PyTorch's own tensors.

    torch.optim.AdamW -> Rule(unit "adamw") -> states exp_avg, exp_avg_sq of optimizer.state, lent to the program
                                            -> step counters: views of one tensor, advanced together

The states are those that `optimizer.state_dict()` saves; an optimizer that has some already goes on from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Sequence

import torch

UNITS = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw"}
REFUSED = {  # an option that is on, and why it is refused
    "differentiable": "aothost does not differentiate through the update",
    "capturable": "capturable=True is for CUDA graphs of an eager loop",
}


class UnsupportedOptimizer(TypeError):
    """An optimizer, or an option of one, that aothost has no update for."""


def unit_of(optimizer: torch.optim.Optimizer) -> str:
    name = type(optimizer).__name__
    unit = UNITS.get(type(optimizer))
    if unit is None:
        base = next((b.__name__ for b in UNITS if isinstance(optimizer, b)), None)
        why = f"a subclass of {base} may have an update of its own; pass {base} itself" if base else "use one of those"
        raise UnsupportedOptimizer(f"aothost.compile_step has updates of SGD, Adam and AdamW, not of {name}: {why}")
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:  # type: ignore[attr-defined]
        raise UnsupportedOptimizer(f"{name} has step hooks, which a compiled step does not call: remove them")
    return "adamw" if unit == "adam" and optimizer.defaults.get("decoupled_weight_decay") else unit


def number(group: dict[str, Any], name: str, where: str) -> float:
    value = group[name]
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        raise UnsupportedOptimizer(f"{where}: {name} is a tensor of {value.numel()} numbers; expected one number")
    return float(value)


def options_of(unit: str, group: dict[str, Any], where: str) -> dict[str, Any]:
    """The options of the unit (aothost plugins UNIT) of one parameter group."""
    for name, why in REFUSED.items():
        if group.get(name):
            raise UnsupportedOptimizer(f"{where}: {name}=True: {why}")
    options: dict[str, Any] = {"weight-decay": number(group, "weight_decay", where)}
    if unit == "sgd":
        options["momentum"] = number(group, "momentum", where)
        options["dampening"] = number(group, "dampening", where)
        switches = ("nesterov", "maximize")
    else:
        options["beta1"], options["beta2"] = (float(b) for b in group["betas"])
        options["eps"] = number(group, "eps", where)
        switches = ("amsgrad", "maximize")
    for name in switches:
        options[name] = bool(group[name])
    return options


def states_of(unit: str, options: dict[str, Any]) -> list[str]:
    if unit == "sgd":
        return ["momentum_buffer"] if options["momentum"] else []
    return ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if options["amsgrad"] else [])]


@dataclass
class Counter:
    """The step of all parameters: f64 for the program, and PyTorch's own (views of `all`)."""

    step: torch.Tensor
    all: torch.Tensor
    version: int


class States:
    """The states of the parameters that a program updates, as entries of optimizer.state."""

    def __init__(self, optimizer: torch.optim.Optimizer, unit: str):
        self.optimizer, self.unit = optimizer, unit
        self.names: list[str] = []
        self.counts = False  # the program has a count of steps
        self.counter = Counter(torch.zeros((), dtype=torch.float64), torch.empty(0), 0)
        self.parameters: list[torch.Tensor] = []
        self.seen: tuple[Any, int] = (optimizer.state, len(optimizer.state))

    def configure(self, options: dict[str, Any]) -> None:
        self.names = states_of(self.unit, options)
        self.counts = self.unit != "sgd" or bool(options["momentum"] and options["dampening"])

    def prepare(self, parameters: Sequence[torch.Tensor]) -> None:
        """Each of the parameters has its states from now on."""
        self.parameters = list(parameters) if self.names else []
        state = self.optimizer.state
        is_new = [not state[p] for p in self.parameters]
        if any(is_new) and not all(is_new) and self.counts:
            raise UnsupportedOptimizer(
                f"{sum(is_new)} of {len(is_new)} parameters have no state yet: a compiled step counts all parameters' "
                "steps together; give the new ones an optimizer and a compiled step of their own"
            )
        for p in self.parameters:
            entry = state[p]
            if self.unit != "sgd" and not entry:
                entry["step"] = torch.zeros(())  # the first one, as in PyTorch
            for name in self.names:
                if entry.get(name) is None:
                    entry[name] = torch.zeros_like(p, memory_format=torch.preserve_format, requires_grad=False)
        self.read_counter(bool(is_new) and not is_new[0])
        self.seen = (state, len(state))

    def is_same(self) -> bool:
        """Whether optimizer.state is the one that was prepared: loading a state makes another."""
        state = self.optimizer.state
        return state is self.seen[0] and len(state) == self.seen[1]

    def reset(self) -> None:
        self.seen = (self.optimizer.state, len(self.optimizer.state))

    def leaves(self, updated: Sequence[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
        """Keys of the program's states, and the tensors that they are to be."""
        if self.counts:
            yield f"state.{self.unit}.step", self.counter.step
        for name, p in updated:
            for state in self.names:
                yield f"state.{self.unit}.{state}.{name}", self.optimizer.state[p][state]

    def read_counter(self, had_state: bool) -> None:
        """PyTorch's counters become views of one tensor, with the values that they have."""
        if self.unit == "sgd":  # it counts nothing in PyTorch; aothost's dampening begins with the second step
            self.counter.step.fill_(float(had_state))
            return
        entries = [self.optimizer.state[p] for p in self.parameters]
        values = [float(e["step"]) for e in entries]
        if len(set(values)) > 1:
            raise UnsupportedOptimizer(
                f"the parameters are at different steps, {min(values):g} to {max(values):g}: a compiled step counts "
                "them together"
            )
        counters = torch.tensor(values, dtype=torch.float32)
        for entry, counter in zip(entries, counters.unbind()):
            entry["step"] = counter
        self.counter.all = counters
        self.counter.step.fill_(values[0] if values else 0.0)
        self.counter.version = counters._version

    def is_current(self) -> bool:
        """Whether PyTorch has counted no step of its own since ours."""
        return self.unit == "sgd" or self.counter.all._version == self.counter.version

    def after_update(self) -> None:
        """PyTorch's counters have the program's count, which a skipped step leaves as it is."""
        if self.unit != "sgd":
            self.counter.all.copy_(self.counter.step)
            self.counter.version = self.counter.all._version
