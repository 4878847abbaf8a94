"""Rewrites a .pt2 archive into the flat layout of PyTorch 2.1 to 2.7: make_flat_archive.py IN.pt2 OUT.pt2

Needs torch. The program's JSON is kept; weights become torch.save files, as torch.export.save wrote them then."""
import io, json, sys, zipfile
import torch

DTYPES = {5: torch.int64, 7: torch.float32, 12: torch.bool, 13: torch.bfloat16}


def tensors(z, root, folder):
    name = f"{root}/data/{folder}/model_{folder}_config.json"
    out, storages = {}, {}
    for fqn, p in json.loads(z.read(name))["config"].items():
        m = p["tensor_meta"]
        if p["path_name"] not in storages:  # tied tensors share one storage, and torch.save keeps it so
            raw = bytearray(z.read(f"{root}/data/{folder}/{p['path_name']}"))
            storages[p["path_name"]] = torch.frombuffer(raw, dtype=DTYPES[m["dtype"]])
        ints = lambda dims: [d["as_int"] for d in dims]
        t = storages[p["path_name"]].as_strided(ints(m["sizes"]), ints(m["strides"]), m["storage_offset"]["as_int"])
        out[fqn] = torch.nn.Parameter(t, m["requires_grad"]) if p["is_param"] else t
    return out


def saved(value):
    b = io.BytesIO()
    torch.save(value, b)
    return b.getvalue()


with zipfile.ZipFile(sys.argv[1]) as z, zipfile.ZipFile(sys.argv[2], "w") as out:
    root = z.namelist()[0].split("/")[0]
    members = {
        "serialized_exported_program.json": z.read(f"{root}/models/model.json"),
        "serialized_state_dict.pt": saved(tensors(z, root, "weights")),
        "serialized_constants.pt": saved(tensors(z, root, "constants")),
        "serialized_example_inputs.pt": b"",
        "version": b"8.17",
    }
    for name, content in members.items():
        out.writestr(zipfile.ZipInfo(name), content)
