#!/usr/bin/env python3
"""Write the joint graphs that PyTorch's min-cut partitioner divides, and what it saves of them.

    tools/export_joint.py MODELS.py OUT_DIR [NAME ..]

MODELS.py has a function models() that gives {name: (factory, autocast dtype or None)}; a factory gives
(module, inputs). OUT_DIR gets NAME.json.gz (bench/partition/joint_dump.h says what is in it), pytorch.json
(seconds, megabytes and values that PyTorch saved) and inputs.json (placeholders that are not parameters or
buffers), as bench/partition/run.sh reads them. The rows are the graph that PyTorch cuts: common subexpressions
are merged. Needs PyTorch 2.11 and networkx; a CPU build is enough.
"""

import gzip
import importlib
import json
import pathlib
import sys
import time

import torch
import torch._inductor.lowering  # its decompositions look at it
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import partitioners
from torch._inductor.decomposition import select_decomp_table


def row_of(node, index):
    value, tag = node.meta.get("val"), node.meta.get("recompute")
    type_ = None
    if isinstance(value, torch.Tensor):
        type_ = [str(value.dtype).removeprefix("torch."), [int(s) for s in value.shape], [int(s) for s in value.stride()]]
    inputs = [index[i] for i in node.all_input_nodes]
    return [node.name, node.op, str(node.target), inputs, type_, tag.name if tag is not None else None]


class Recorder:
    """Stands between the partitioner and its solver, which sees the graph as it is cut."""

    def __init__(self):
        self.solver = partitioners.solve_min_cut

    def solve(self, graph, info, *args, **kwargs):
        self.graph = graph
        self.static = {n.name for n in info.static_lifetime_input_nodes}
        self.saved, banned = self.solver(graph, info, *args, **kwargs)
        return self.saved, banned

    def partition(self, module, inputs, *, num_fwd_outputs, **kwargs):
        start = time.perf_counter()
        halves = partitioners.min_cut_rematerialization_partition(module, inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)
        self.seconds = time.perf_counter() - start
        nodes = list(self.graph.nodes)
        index = {n: i for i, n in enumerate(nodes)}
        self.dump = {"num_fwd_outputs": num_fwd_outputs, "merged": True, "nodes": [row_of(n, index) for n in nodes]}
        # The solver also cuts values, tagged ones, that the backward then does not read; PyTorch drops them when it builds the halves.
        read = {n.name for n in halves[1].graph.find_nodes(op="placeholder")}
        self.saved = [n for n in self.saved if n.name in read]
        return halves

    def row(self, name):
        nbytes = sum(partitioners._size_of(n) for n in self.saved if n.op != "placeholder")
        return {"model": name, "joint": len(self.dump["nodes"]), "s_mincut": round(self.seconds, 3),
                "act_bytes_mincut": nbytes, "nsaved_mincut": len(self.saved)}

    def inputs(self):
        names = [row[0] for row in self.dump["nodes"] if row[1] == "placeholder" and "tangents" not in row[2]]
        return [n for n in names if n not in self.static]


def record(recorder, factory, autocast):
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, inputs = factory()
    compiler = lambda graph, _: make_boxed_func(graph.forward)
    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, partition_fn=recorder.partition,
                           decompositions=select_decomp_table())
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        out = compiled(*inputs)
    out.float().sum().backward()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(path.parent.resolve()))  # the compiler imports the module again by its name
    models = importlib.import_module(path.stem)
    folder, wanted = pathlib.Path(sys.argv[2]), sys.argv[3:]
    recorder = Recorder()
    partitioners.solve_min_cut = recorder.solve
    rows, inputs = [], {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, (factory, autocast) in models.models().items():
        if wanted and name not in wanted:
            continue
        record(recorder, factory, autocast)
        text = json.dumps(recorder.dump).encode()
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        rows.append(recorder.row(name))
        inputs[name] = recorder.inputs()
        print(rows[-1])
    (folder / "pytorch.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "inputs.json").write_text(json.dumps(inputs, indent=1) + "\n")


if __name__ == "__main__":
    main()
