"""Graphs of PyTorch as compiled programs of libaothost.

    CompiledGraph     a graph: a forward alone, or forward and backward, divided by the pipeline's own partition stage
    Instance          its program with leaves (parameters, buffers) bound to the memory of some tensors

A graph is compiled once, under fake tensors, and runs on real ones. Dynamo may call one graph for several modules of
the same code: each set of parameters whose forwards still wait for their backward has an instance of its own, which
comes out of aothost's compile cache. Other inputs are given to each call.
"""

from __future__ import annotations

import threading
from typing import Any, Sequence

import torch
from torch import fx

from . import _aothost
from .graph_text import Program as Text
from .graph_text import write
from .notes import current
from .options import Options
from .sizes import Sizes, allocate

ALIGNMENT = 64  # of memory that programs read where it is (aothost.h)
ONE_BYTE = torch.zeros((), dtype=torch.uint8)


def backends_of(options: Options) -> list[str]:
    """A vendor's backend leaves what it lacks to backend-cpu behind it; ours run everything."""
    is_ours = options.backend in ("backend-cpu", "backend-cuda", "backend-ref")
    return [options.backend] if is_ours else [options.backend, "backend-cpu"]


def pipeline_of(options: Options, is_joint: bool) -> str:
    """The YAML of the pipeline: the program is in aothost's text form, already functional, with its backward."""
    stages = ["  - use: rng", *(f"  - use: {stage}" for stage in options.stages)]
    if is_joint:
        stages.append(f"  - use: {options.partition}")
        if options.budget is not None:
            stages.append(f'    with: {{objective: memory, budget: "{options.budget}"}}')
    stages += [f"  - use: {unit}" for unit in backends_of(options)]
    return "\n".join(["aot: 1", "model: {import: ir}", "stages:", *stages, ""])


def load(text: Text, options: Options, is_joint: bool) -> Any:
    flags = 0 if options.cache else 1  # AOTHOST_NO_CACHE
    settings = list(options.settings)
    if "backend-cpu" in backends_of(options) and not any(s.startswith("stages.backend-cpu.threads=") for s in settings):
        settings.append(f"stages.backend-cpu.threads={torch.get_num_threads()}")
    return _aothost.Program(
        pipeline_of(options, is_joint), text.text.encode(), "torch.compile.ir", settings, list(options.plugins), flags
    )


class CompiledGraph:
    """A compiled program and how its ports belong to a graph's inputs and outputs."""

    def __init__(
        self, module: fx.GraphModule, options: Options, n_forward_outputs: int | None = None, static: Sequence[int] = ()
    ):
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        (output,) = [n for n in module.graph.nodes if n.op == "output"]
        values = [n.meta.get("val") if isinstance(n, fx.Node) else n for n in output.args[0]]
        self.is_joint = n_forward_outputs is not None
        self.text = write(module, n_forward_outputs, static)
        self.n_nodes = self.text.n_nodes
        n_forward = n_forward_outputs if n_forward_outputs is not None else len(values)
        inputs = [n.meta["val"] for n in placeholders][: len(placeholders) - len(self.text.tangents)]
        self.n_inputs = len(inputs)
        self.sizes = Sizes(inputs, values[:n_forward])
        self.gradient_sizes = Sizes(inputs, values[n_forward:]) if self.is_joint else None
        self.options = options
        first = Instance(load(self.text, options, self.is_joint))
        self.instances = [first]
        self.read_by_backward = [
            i for k, i in enumerate(self.text.parameters) if first.program.backward_reads(f"param.p{k}")
        ]
        self.last_saved_bytes: int | None = None  # of the last forward inside a `with noting()` (notes.py)
        self.lock = threading.Lock()
        if (notes := current()) is not None:
            notes.graphs.append(self)

    def instance_for(self, parameters: Sequence[torch.Tensor]) -> "Instance":
        """The instance that is bound to these; else one that no backward waits for is bound to them."""
        key = tuple([p.data_ptr() for p in parameters])
        for k, instance in enumerate(self.instances):
            if instance.key == key:
                if k:  # the next call finds it sooner
                    self.instances.insert(0, self.instances.pop(k))
                return instance
        for instance in self.instances:
            if not instance.program.in_flight():
                break
        else:
            instance = Instance(load(self.text, self.options, self.is_joint))
            self.instances.insert(0, instance)
        instance.bind(key, parameters)
        return instance

    def forward(self, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        """Outputs, and the frame with what the backward needs."""
        with self.lock:
            instance = self.instance_for([inputs[i] for i in self.text.parameters])
            for aligned, parameter in instance.copies:
                aligned.copy_(parameter.detach())
            results = allocate(self.sizes.of(inputs))
            given = [inputs[i] for i in self.text.user_inputs] + self.text.constants
            if self.text.carried:
                given.append(ONE_BYTE.expand([int(inputs[i]) for i in self.text.carried]))
            seed = int(torch.empty((), dtype=torch.int64).random_()) if self.text.draws else 0
            frame = instance.program.forward(given, [results[k] for k in self.text.outputs], seed)
            if self.is_joint and current() is not None:
                self.last_saved_bytes = frame.saved_bytes()
        return results, frame

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        return self.forward(inputs)[0]

    def backward(self, frame: Any, layouts: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Gradients by input, None where there is none. tangents: by tangent of the joint graph."""
        by_output: list[Any] = [None] * len(self.text.outputs)
        for output, tangent in zip(self.text.tangents, tangents):
            by_output[output] = tangent
        results = allocate(layouts)
        of_inputs = [None if i is None else results[i] for i in self.text.input_gradients]
        of_leaves = [None if i is None else results[i] for i in self.text.parameter_gradients]
        frame.program.backward(frame, by_output, of_inputs, of_leaves)
        return results


class Instance:
    """A loaded program, and the tensors that its leaves are bound to."""

    def __init__(self, program: Any):
        self.program = program
        self.key: tuple[int, ...] = ()  # their addresses
        self.tensors: list[torch.Tensor] = []  # the memory stays as long as the program reads it
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []  # where a parameter is not aligned

    def bind(self, key: tuple[int, ...], parameters: Sequence[torch.Tensor]) -> None:
        self.key, self.tensors, self.copies = (), [], []  # nothing, if one of them fails
        for k, (address, parameter) in enumerate(zip(key, parameters)):
            tensor = parameter
            if address % ALIGNMENT:
                tensor = torch.empty_strided(parameter.shape, parameter.stride(), dtype=parameter.dtype)
                self.copies.append((tensor, parameter))
            self.program.bind(f"param.p{k}", tensor)
            self.tensors.append(tensor)
        self.key = key
