"""A model, its loss and an optimizer's update as one program, for inputs of one layout.

Whole(model, loss_fn) -> torch.export (non-strict) -> archive -> aothost: functionalize, rng, autograd, partition,
                                                                 update, one step graph, backend
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.overrides import TorchFunctionMode

from . import _aothost
from .options import Options
from .program import ALIGNMENT, backends_of
from .step_optimizer import States

COMPILE_FLAGS = 3  # AOTHOST_OPTIMIZER | AOTHOST_STEP
NOT_FOUND = 5  # AOT_E_NOT_FOUND


class Whole(torch.nn.Module):
    """model and loss_fn as one function of the tensors among a step's arguments."""

    def __init__(self, model: torch.nn.Module, loss_fn: Callable[..., Any] | None, n_targets: int):
        super().__init__()
        self.model = model
        self.loss = loss_fn  # a submodule, if it is a module
        self.n_targets = n_targets
        self.rebuild: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]] = lambda tensors: ((), {})

    def forward(self, *tensors: Any) -> torch.Tensor:
        args, kwargs = self.rebuild(tensors)
        versions = [t._version for t in tensors]
        split = len(args) - self.n_targets if self.loss is not None else len(args)
        result = self.model(*args[:split], **kwargs)
        loss = checked_loss(self.loss(result, *args[split:]) if self.loss is not None else own_loss(result))
        for i, (tensor, version) in enumerate(zip(tensors, versions)):
            if tensor._version != version:
                raise NotImplementedError(
                    f"the model changes tensor {i} of the step's inputs in place, of shape {list(tensor.shape)}: a "
                    "step leaves its inputs alone; let the model change a copy (clone)"
                )
        return loss


def own_loss(result: Any) -> Any:
    """The loss that a model returns itself: as Hugging Face's do with labels."""
    if isinstance(result, torch.Tensor):
        return result
    loss = result.get("loss") if hasattr(result, "get") else getattr(result, "loss", None)
    if loss is None and isinstance(result, (tuple, list)) and result:
        loss = result[0]
    if loss is None:
        raise TypeError("loss_fn is None, and the model returns no loss: expected a tensor, or a result with `loss`")
    return loss


def checked_loss(loss: Any) -> torch.Tensor:
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"the loss is a {type(loss).__name__}; expected a tensor of one number")
    if loss.numel() != 1:
        raise ValueError(f"the loss has shape {list(loss.shape)}; expected one number: reduce it, as by mean()")
    if not loss.requires_grad:
        raise ValueError("the loss depends on no parameter that the optimizer updates")
    return loss


def pipeline_of(unit: str, optimizer: dict[str, Any], options: Options, draws: bool, settings: dict[str, Any]) -> str:
    """The YAML; JSON is the form of its maps."""
    stages: list[Any] = [{"use": "functionalize"}, *([{"use": "rng"}] if draws else []), {"use": "autograd"}]
    stages += [{"use": stage} for stage in options.stages]
    partition: dict[str, Any] = {"use": options.partition}
    if options.budget is not None:
        partition["with"] = {"objective": "memory", "budget": options.budget}
    stages += [partition, *({"use": unit} for unit in backends_of(options))]
    train = {"steps": 1, "data": "random", "optimizer": unit, "optimizer-with": optimizer, **settings}
    lines = ["aot: 1", "model: {import: pt2}", "stages:", *(f"  - {json.dumps(s)}" for s in stages)]
    return "\n".join([*lines, "run:", f"  train: {json.dumps(train)}", ""])


def draws_of(program: Any) -> bool:
    """Whether an exported graph has operators that draw random numbers."""
    for module in program.graph_module.modules():
        for node in getattr(module, "graph", torch.fx.Graph()).nodes:
            if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
                return True
            if "scaled_dot_product" in str(node.target) and len(node.args) + len(node.kwargs) > 4:
                return True
    return False


def loss_of(program: Any) -> torch.Tensor:
    """A tensor like the loss."""
    (output,) = [n for n in program.graph.nodes if n.op == "output"]
    value = output.args[0][-1].meta["val"]
    return torch.empty(value.shape, dtype=value.dtype)


def refuse_sparse(model: torch.nn.Module) -> None:
    for name, module in model.named_modules():
        if getattr(module, "sparse", False) is True:
            raise NotImplementedError(
                f"{name} ({type(module).__name__}) has sparse gradients, which aothost does not have: pass sparse=False"
            )


class NoInnerGradients(TorchFunctionMode):
    """torch.export cannot trace the autograd engine, and what it says of it names neither."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward):
            raise NotImplementedError(
                f"model or loss_fn calls {func.__module__}.{func.__name__}: a step has no gradients of gradients "
                "(double backward), as of gradient penalties; use an eager loop there"
            )
        return func(*args, **(kwargs or {}))


class StepProgram:
    """The compiled program, and the leaves that it shares with PyTorch."""

    def __init__(
        self,
        whole: Whole,
        tensors: Sequence[torch.Tensor],
        trained: Sequence[torch.Tensor],
        unit: str,
        optimizer: dict[str, Any],
        options: Options,
        settings: dict[str, Any],
    ):
        self.settings = settings
        sets = list(options.settings)
        if "backend-cpu" in backends_of(options) and not any(s.startswith("stages.backend-cpu.threads=") for s in sets):
            sets.append(f"stages.backend-cpu.threads={torch.get_num_threads()}")
        flags = 0 if options.cache else 1  # AOTHOST_NO_CACHE
        # The program maps the file; its weights cost no memory, for they are read no more once PyTorch's are bound.
        with tempfile.TemporaryDirectory(prefix="aothost-") as folder:
            path = os.path.join(folder, "compile_step.pt2")
            exported = export(whole, tensors, trained, path)
            self.draws = draws_of(exported)
            self.loss = loss_of(exported)
            text = pipeline_of(unit, optimizer, options, self.draws, settings)
            self.program = _aothost.Program(text, None, path, sets, list(options.plugins), flags, COMPILE_FLAGS)
        named = dict(whole.named_parameters(remove_duplicate=False)) | dict(whole.named_buffers(remove_duplicate=False))
        signature = exported.graph_signature
        seen: dict[int, str] = {}
        self.leaves: list[tuple[str, torch.Tensor]] = []  # parameters and buffers; of tied ones the first name
        self.trained: list[tuple[str, torch.Tensor]] = []  # those that the program updates
        wanted = {id(p) for p in trained}
        for kind, names in (("param", signature.parameters), ("buffer", signature.buffers)):
            for name in names:
                tensor = named[name]
                if id(tensor) in seen:
                    continue
                seen[id(tensor)] = name
                self.leaves.append((f"{kind}.{name}", tensor))
                if id(tensor) in wanted:
                    self.trained.append((name, tensor))

    def has(self, key: str) -> bool:
        """Whether the program has this leaf."""
        try:
            self.program.bind(key, None)
        except _aothost.Error as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    def updated(self, states: States) -> list[tuple[str, torch.Tensor]]:
        """Of the trained parameters those that the loss depends on: the others have no states."""
        found = []
        for name, p in self.trained:
            g = states.group_of[id(p)]
            if not g.names or self.has(states.key(g, g.names[0], name)):
                found.append((name, p))
        return found

    def private_leaves(
        self, updated: Sequence[tuple[str, torch.Tensor]]
    ) -> Iterator[tuple[str, Callable[[], torch.Tensor]]]:
        """Leaves that PyTorch has no counterpart of, with their first values: programs of one step share them."""
        for name, p in updated if self.settings["accumulate"] > 1 else ():
            yield f"state.accumulated.{name}", functools.partial(torch.zeros_like, p, requires_grad=False)
        if self.has("state.loss-scale.scale"):
            scale = self.settings.get("loss-scale", "dynamic")
            first = 65536.0 if scale == "dynamic" else float(scale)
            yield "state.loss-scale.scale", functools.partial(torch.tensor, first, dtype=torch.float32)
            for name in ("in-a-row", "skipped"):
                yield f"state.loss-scale.{name}", functools.partial(torch.zeros, (), dtype=torch.int64)


def export(whole: Whole, tensors: Sequence[torch.Tensor], trained: Sequence[torch.Tensor], path: str) -> Any:
    """The exported program, which is saved as an archive.

    Parameters that the optimizer does not update are constants to the export, and tensors have storages of their own.
    """
    wanted = {id(p) for p in trained}
    others = [p for p in whole.parameters() if p.requires_grad and id(p) not in wanted]
    parts = [(t, t.data) for t in (*whole.parameters(), *whole.buffers()) if is_part(t)]
    for p in others:
        p.requires_grad_(False)
    for t, data in parts:
        t.data = data.clone(memory_format=torch.preserve_format)
    try:
        with torch.enable_grad(), NoInnerGradients():
            exported = torch.export.export(whole, tuple(t.detach() for t in tensors), strict=False)
        torch.export.save(exported, path)
        return exported
    except Exception as error:
        if hasattr(error, "add_note"):  # Python 3.11
            error.add_note("aothost.compile_step: torch.export could not make one graph of model and loss_fn")
        raise
    finally:
        for t, data in parts:
            t.data = data
        for p in others:
            p.requires_grad_(True)


def is_part(tensor: torch.Tensor) -> bool:
    return tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size()
