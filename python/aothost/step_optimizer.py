"""An optimizer of torch.optim as a unit of aothost: its rule, its options, and its states in PyTorch's own tensors.

    torch.optim.AdamW -> Rule(unit "adamw") -> states exp_avg, exp_avg_sq of optimizer.state, lent to the program
                                            -> step counters: views of one tensor, advanced together

The states are those that `optimizer.state_dict()` saves; an optimizer that has some already continues from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Sequence

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
class Group:
    """Parameters with the same options, rate and step: a parameter group, or those of one at the same step."""

    index: int  # in optimizer.param_groups
    options: dict[str, Any]
    parameters: list[torch.Tensor]
    names: list[str]  # of states
    counts: bool  # the program counts its steps
    step: torch.Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))  # the program's
    steps: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # PyTorch's, by parameter: it has views of them
    version: int = 0  # of steps, at our last update
    lr: torch.Tensor = field(default_factory=lambda: torch.full((), -1.0, dtype=torch.float64))
    last_lr: float = -1.0


class States:
    """The optimizer's groups, and the states of their parameters as entries of optimizer.state."""

    def __init__(self, optimizer: torch.optim.Optimizer, unit: str):
        self.optimizer, self.unit = optimizer, unit
        self.groups: list[Group] = []
        self.group_of: dict[int, Group] = {}
        self.seen: tuple[Any, int] = (None, 0)

    def divide(self) -> tuple[int, ...]:
        """Makes the groups as the optimizer has them now. By parameter: its group."""
        self.groups, numbers = [], []
        found: dict[Any, int] = {}
        for i, group in enumerate(self.optimizer.param_groups):
            options = options_of(self.unit, group, f"group {i} of {type(self.optimizer).__name__}")
            counts = self.unit != "sgd" or bool(options["momentum"] and options["dampening"])
            for p in group["params"]:
                key = (i, self.step_of(p) if counts else 0.0)
                if key not in found:
                    found[key] = len(self.groups)
                    self.groups.append(Group(i, options, [], states_of(self.unit, options), counts))
                    self.groups[-1].step.fill_(key[1])
                self.groups[found[key]].parameters.append(p)
                numbers.append(found[key])
        self.group_of = {id(p): g for g in self.groups for p in g.parameters}
        self.note()
        return tuple(numbers)

    def step_of(self, parameter: torch.Tensor) -> float:
        """Its steps so far. SGD counts none in PyTorch; aothost's dampening begins with the second."""
        entry = self.optimizer.state.get(parameter, {})
        return float(entry.get("step", 0.0)) if self.unit != "sgd" else float(entry.get("momentum_buffer") is not None)

    def note(self) -> None:
        self.seen = (self.optimizer.state, len(self.optimizer.state))

    def is_current(self) -> bool:
        """Whether optimizer.state is as our last update left it: no state was loaded, PyTorch has made no step."""
        state = self.optimizer.state
        if state is not self.seen[0] or len(state) != self.seen[1]:
            return False
        return all([g.steps._version == g.version for g in self.groups])

    def unit_options(self, names: Mapping[int, str]) -> dict[str, Any]:
        """For run.train.optimizer-with. Of several groups each has a rule with its parameters' names."""
        first = self.groups[0].options
        if len(self.groups) == 1:
            return first
        rules = []
        for g in self.groups:
            members = [names[id(p)] for p in g.parameters]
            for name in members:
                if set(name) & set(",:;*?\n"):
                    raise UnsupportedOptimizer(f"parameter '{name}': a name in several groups has none of , : ; * ?")
            rules.append(", ".join(members) + ": " + ", ".join(f"{k}={text_of(v)}" for k, v in g.options.items()))
        return {**first, "groups": "; ".join(rules)}

    def key(self, group: Group, state: str, name: str = "") -> str:
        """Of a leaf of the program."""
        if not name and len(self.groups) > 1:
            name = str(1 + self.groups.index(group))
        return f"state.{self.unit}.{state}" + (f".{name}" if name else "")

    def prepare(self, updated: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Each of these parameters has its states from now on; PyTorch's steps become views of one tensor a group."""
        state = self.optimizer.state
        wanted = {id(p) for _, p in updated}
        for g in self.groups:
            members = [p for p in g.parameters if id(p) in wanted and g.names]
            for p in members:
                entry = state[p]
                if self.unit != "sgd" and "step" not in entry:
                    entry["step"] = torch.zeros(())  # the first one, as in PyTorch
                for name in g.names:
                    if entry.get(name) is None:
                        entry[name] = torch.zeros_like(p, memory_format=torch.preserve_format, requires_grad=False)
            if self.unit != "sgd":
                g.steps = torch.tensor([float(state[p]["step"]) for p in members], dtype=torch.float32)
                for p, step in zip(members, g.steps.unbind()):
                    state[p]["step"] = step
                g.step.fill_(g.steps[0] if members else 0.0)
                g.version = g.steps._version
        self.note()

    def leaves(self, updated: Sequence[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
        """Keys of the parameters' states, and the tensors that they are to be."""
        for name, p in updated:
            g = self.group_of[id(p)]
            for state in g.names:
                yield self.key(g, state, name), self.optimizer.state[p][state]

    def shared_leaves(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Those of a group as a whole; the program has none where it updates no parameter of the group."""
        for g in self.groups:
            if g.counts:
                yield self.key(g, "step"), g.step
            if len(self.groups) > 1:
                yield self.key(g, "lr-scale"), g.lr

    def rate(self) -> float:
        """What the program gets as lr: of several groups each has its own in a leaf."""
        groups = self.optimizer.param_groups
        if len(self.groups) == 1:
            return float(groups[0]["lr"])
        for g in self.groups:
            lr = float(groups[g.index]["lr"])
            if lr != g.last_lr:
                g.lr.fill_(lr)
                g.last_lr = lr
        return 1.0

    def after_update(self) -> None:
        """PyTorch's counts are the program's, which a skipped step leaves as they are."""
        if self.unit != "sgd":
            for g in self.groups:
                g.steps.copy_(g.step)
                g.version = g.steps._version


def text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
