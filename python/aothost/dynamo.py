"""The backend of torch.compile: AOTAutograd's graphs in, compiled programs out.

    Dynamo's graph -> AOTAutograd -> joint graph -> divide() -> CompiledGraph -> two halves of one node each
                                  -> inference graph -> compile_inference()

The joint graph is taken where AOTAutograd asks for a partition. The pipeline's own partition divides it; AOTAutograd
gets two graphs of one opaque node, with a handle as the only saved value (PyTorch 2.11,
torch/_functorch/partitioners.py has the contract of a partition function).
"""

from __future__ import annotations

import functools
import logging
import operator
from typing import Any, Callable, Sequence

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from . import _aothost
from .graph_text import Unsupported
from .options import Options
from .fallback import compile_or_split, refused_by
from .program import CompiledGraph

log = logging.getLogger("aothost")


def backend(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, options: Any = None, **unused: Any
) -> Callable[..., Any]:
    """torch.compile(model, backend="aothost", options={..}); options.Options lists them."""
    chosen = Options.of(options)
    compiler = functools.partial(compile_half, options=chosen)
    wrapped = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=functools.partial(compile_inference, options=chosen),
        partition_fn=functools.partial(divide, options=chosen),
        keep_inference_input_mutations=False,
    )
    return wrapped(module, example_inputs)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """AOTAutograd hands one list over, which is cleared so that inputs die early."""
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


# ---- the joint graph ----


class Joint:
    """Forward and backward as AOTAutograd calls them."""

    def __init__(self, graph: CompiledGraph):
        self.graph = graph

    def __deepcopy__(self, memo: dict[int, Any]) -> "Joint":
        return self  # AOTAutograd copies the graph that has it in its metadata

    def forward(self, inputs: list[Any]) -> list[Any]:
        graph = self.graph
        given = list(inputs)
        inputs.clear()
        results, frame = graph.forward(given)
        # Of leaves the backward reads what is there then; autograd's own saved tensors would notice a change.
        versions = [(given[i], given[i]._version) for i in graph.read_by_backward]
        frame.data = (graph.gradient_sizes.of(given), versions)
        # AOTAutograd refuses a second derivative (create_graph) if a saved value requires a gradient.
        return [*results, frame.handle().requires_grad_()]

    def backward(self, inputs: list[Any]) -> list[Any]:
        handle, *tangents = inputs
        inputs.clear()
        frame = _aothost.frame_of(handle)
        layouts, versions = frame.data
        for tensor, version in versions:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"a tensor of shape {list(tensor.shape)} is at version {tensor._version}; expected version {version}"
                )
        return self.graph.backward(frame, layouts, tangents)


def opaque_half(names: Sequence[fx.Node | None], target: Any, results: Sequence[Any], handle: Any) -> fx.GraphModule:
    """A graph of one node that AOTAutograd's wrappers can look at: its inputs and outputs have fake values."""
    graph = fx.Graph()
    inputs = []
    for node in names:
        port = graph.placeholder("handle" if node is None else node.name)
        port.meta = {"val": handle, "tensor_meta": None} if node is None else dict(node.meta)
        inputs.append(port)
    call = graph.call_function(target, tuple(inputs))
    call.meta["val"] = None
    outputs: list[fx.Node | None] = []
    for i, value in enumerate(results):
        if value is None:
            outputs.append(None)
            continue
        item = graph.call_function(operator.getitem, (call, i))
        item.meta["val"] = value
        outputs.append(item)
    graph.output(tuple(outputs)).meta["desc"] = [None] * len(outputs)
    return fx.GraphModule({}, graph)


def divide(
    joint: fx.GraphModule,
    inputs: Any,
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: Sequence[int] | None = None,
    options: Options,
    **unused: Any,
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The partition function: compiles the joint graph, and returns two halves that call it."""
    static = static_lifetime_input_indices or ()
    try:
        graph = CompiledGraph(joint, options, num_fwd_outputs, static)
    except (Unsupported, _aothost.Error) as error:
        if options.strict or not refused_by(error, joint):
            raise
        log.info("the joint graph is divided by PyTorch's partition: %s", error)
        return min_cut_rematerialization_partition(
            joint, inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static_lifetime_input_indices
        )
    return halves_of(joint, num_fwd_outputs, Joint(graph))


def halves_of(joint: fx.GraphModule, n_forward: int, compiled: Joint) -> tuple[fx.GraphModule, fx.GraphModule]:
    ports = [n for n in joint.graph.nodes if n.op == "placeholder"]
    primals, tangents = ports[: compiled.graph.n_inputs], ports[compiled.graph.n_inputs :]
    (output,) = [n for n in joint.graph.nodes if n.op == "output"]
    values = [n.meta["val"] if isinstance(n, fx.Node) else n for n in output.args[0]]
    mode = torch._guards.detect_fake_mode([v for v in values if v is not None])
    with mode:
        handle = torch.empty(1, dtype=torch.float64)
    forward = opaque_half(primals, forward_call, [*values[:n_forward], handle], handle)
    backward = opaque_half([None, *tangents], backward_call, values[n_forward:], handle)
    forward.meta["aothost"] = compiled.forward
    backward.meta["aothost"] = compiled.backward
    return forward, backward


def forward_call(*inputs: Any) -> Any:
    raise AssertionError("the node of an opaque half is never run")


def backward_call(*inputs: Any) -> Any:
    raise AssertionError("the node of an opaque half is never run")


def compile_half(module: fx.GraphModule, example_inputs: Sequence[Any], *, options: Options) -> Callable[..., Any]:
    """AOTAutograd's compiler of a half: an opaque one is compiled already."""
    run = module.meta.get("aothost")
    if run is None:
        run = list_of(compile_or_split(module, options, ()))
    return boxed(lambda inputs: run(inputs))


def list_of(run: Callable[[Sequence[Any]], Any]) -> Callable[[list[Any]], list[Any]]:
    def call(inputs: list[Any]) -> list[Any]:
        given = list(inputs)
        inputs.clear()
        return list(run(given))

    return call


# ---- an inference graph ----


def compile_inference(module: fx.GraphModule, example_inputs: Sequence[Any], *, options: Options) -> Callable[..., Any]:
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    static = getattr(metadata, "static_input_indices", None) or ()
    return boxed(list_of(compile_or_split(module, options, static)))
