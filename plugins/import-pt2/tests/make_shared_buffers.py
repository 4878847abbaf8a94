"""Makes data/shared_buffers.pt2 (needs torch): two buffers that overlap in one storage, one of them updated."""
import json, sys, zipfile
import torch


class Shared(torch.nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.arange(4.0)
        self.register_buffer("a", base[:3])
        self.register_buffer("b", base[1:])

    def forward(self, x):
        self.a.add_(1)
        return x + self.b


torch.export.save(torch.export.export(Shared(), (torch.ones(3),)), "whole.pt2")
with zipfile.ZipFile("whole.pt2") as whole, zipfile.ZipFile(sys.argv[1], "w") as out:
    for name in whole.namelist():
        data = whole.read(name)
        if name.endswith("models/model.json"):
            program = json.loads(data)
            for node in program["graph_module"]["graph"]["nodes"]:
                node["metadata"].pop("stack_trace", None)  # paths of the machine
            data = json.dumps(program).encode()
        out.writestr(zipfile.ZipInfo(name), data)
