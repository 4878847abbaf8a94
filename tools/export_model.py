#!/usr/bin/env python3
"""Export a PyTorch model, and what PyTorch computes for it, to files that aothost reads.

See --help for use. Needs what tools/requirements-export.txt names; PyTorch 2.6 to 2.11.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import site
import sys
import sysconfig
import traceback
import warnings

try:
    import torch
    import torch.utils.checkpoint
    from safetensors.torch import save_file

    from eager_step import drop_unchanged_inputs, leaves_of, run_step, same
    from float64_records import Float64Error, float64_records
except ImportError as missing:
    torch = None
    WHY_NO_TORCH = str(missing)

DESCRIPTION = """\
Export a PyTorch model for aothost.

FACTORY is a function without arguments that returns (model, args) or (model, args,
kwargs): an nn.Module, the tuple of example inputs of one training step, and a
dict of those that are passed by name. The model is exported in the mode in which
FACTORY returns it, or in that of --train or --eval. A scalar output is taken as
the loss.

Files written to OUT_DIR
  train.pt2             torch.export.export(model, args), weights included, and the
                        schemas of operators that are not PyTorch's own
  core.pt2              the same after run_decompositions()            (--core)
  expected.safetensors  what eager PyTorch computes in one step: inputs, outputs,
                        gradients, updated buffers; read by `aothost verify`
  expected.f64.safetensors  the same step in float64, and how far PyTorch's own
                        precision is from it; `aothost verify --against f64`
  info.json             PyTorch version, node counts, operators, what was lost

The exported program is run too, and compared with eager PyTorch: outputs, gradients,
buffers. What torch.export lost (the backward of an autograd.Function, a buffer that
is reassigned in Python, or that activation checkpointing updates once more in eager
mode) is told, and stands in info.json as "lost".
"""

EPILOG = """\
example
  cat > mlp.py <<'EOF'
  import torch
  from torch import nn

  class Mlp(nn.Module):
      def __init__(self):
          super().__init__()
          self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))

      def forward(self, x, labels):
          return nn.functional.cross_entropy(self.layers(x), labels)

  def make():
      return Mlp(), (torch.randn(8, 16), torch.randint(0, 10, (8,)))
  EOF
  python tools/export_model.py mlp.py:make out/mlp --core
  python tools/export_model.py mlp.py:make out/mlp_any --dynamic 0:0=batch:1:64,1:0=batch

sizes that may vary: --dynamic INPUT:DIM=SIZE[:MIN:MAX],...
  INPUT   0, 1, .. a positional argument (those of *args too); a name: a keyword argument, or the
          parameter of forward with that name; what is inside after a dot: 0.1, batch.ids
  SIZE    a name, or a multiple of one: batch, 2*half, 2*half+1
  MIN:MAX the range of what the name stands for

keys of expected.safetensors
  input.K         K-th input before the call; K counts the tensors alone: numbers,
                  None and texts are constants of the exported program
  tangent.K       cotangent of output K: 1 for a scalar, else 1 + 0.1*i over the flat
                  index i; absent where the output takes no gradient
  output.K        K-th output
  input_after.K   every input after the call, if the call changed any of them
  grad.NAME       gradient of a parameter; a tied one has its first name only
  grad.input.K    gradient of an input that requires one
  buffer_after.NAME  buffer after the call
expected.f64.safetensors has the same keys in float64 (integers as they are), and
  distance.KEY    the largest Euclidean distance of a float32 run from it, a number

exit status: 0 done, 1 the export or the eager run failed, 2 bad usage
"""

FILES = ("train.pt2", "core.pt2", "expected.safetensors", "expected.f64.safetensors", "info.json")


class UsageError(Exception):
    """The command line, or what it names, is wrong."""


class ExportError(Exception):
    """PyTorch could not run or export the model."""


# ---- the model -----------------------------------------------------------------------------


def load_module(name: str):
    """The module of a dotted name or of a .py file."""
    if not name.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)
    path = pathlib.Path(name).resolve()
    if not path.is_file():
        raise UsageError(f"no such file: {name}")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def load_factory(where: str):
    """The function that MODULE_OR_FILE:FACTORY names."""
    name, colon, attribute = where.rpartition(":")
    if not colon or not name or not attribute:
        raise UsageError(f"'{where}' is not MODULE_OR_FILE:FACTORY, as in models/mlp.py:make")
    try:
        module = load_module(name)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"cannot import {name}: {reason(error)}") from error
    factory = getattr(module, attribute, None)
    if not callable(factory):
        found = ", ".join(functions_of(module)) or "none"
        raise UsageError(f"{name} has no function '{attribute}'; functions there: {found}")
    return factory


def functions_of(module) -> list[str]:
    return [
        key
        for key, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__ and not isinstance(value, type)
    ]


def make_model(factory, seed: int):
    """Calls the factory under the seed and checks what it returns."""
    torch.manual_seed(seed)
    try:
        made = factory()
    except Exception as error:
        raise ExportError(f"the factory failed: {reason(error)}") from error
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise UsageError(f"the factory must return (model, args) or (model, args, kwargs), not {type(made).__name__}")
    model, args = made[:2]
    kwargs = made[2] if len(made) == 3 else {}
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"the first thing the factory returns must be an nn.Module, not {type(model).__name__}")
    if not isinstance(args, tuple):
        raise UsageError(f"the second thing the factory returns must be a tuple of inputs, not {type(args).__name__}")
    if not isinstance(kwargs, dict):
        raise UsageError(f"the third thing the factory returns must be a dict of inputs by name, not {type(kwargs).__name__}")
    leaves_of((args, kwargs))
    return model, args, kwargs


# ---- its mode ------------------------------------------------------------------------------


def depends_on_mode(module) -> bool:
    """Does the module itself compute something else in training?"""
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, torch.nn.modules.batchnorm._NormBase):
        return module.track_running_stats
    if isinstance(module, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
        return module.dropout > 0
    if type(module).__module__.startswith("torch.nn."):
        return isinstance(module, torch.nn.RReLU)
    try:
        return "self.training" in inspect.getsource(type(module))
    except (OSError, TypeError):
        return False


def listed(names: list[str]) -> str:
    return ", ".join(name or "the model itself" for name in names[:5]) + (", .." if len(names) > 5 else "")


def set_mode(model, wanted: str | None) -> str:
    """Puts the model into the mode asked for, if any; returns its mode. What is not as a training step has it is told."""
    before = {name: module.training for name, module in model.named_modules()}
    if wanted:
        model.train(wanted == "train")
    affected = {name: module.training for name, module in model.named_modules() if depends_on_mode(module)}
    changed = [name for name, training in affected.items() if training != before[name]]
    evaluated = [name for name, training in affected.items() if not training]
    if changed:
        print(f"export_model: note: --{wanted} changes the mode of {len(changed)} modules that depend on it: {listed(changed)}",
              file=sys.stderr)
    elif evaluated and not wanted:
        print(f"export_model: warning: {len(evaluated)} of {len(affected)} modules that depend on the mode (dropout, batch norm) are in"
              f" evaluation mode, as the factory returned them: {listed(evaluated)}; --train exports them for training, --eval"
              " says that this is meant", file=sys.stderr)
    modes = {module.training for module in model.modules()}
    return "mixed" if len(modes) == 2 else "train" if True in modes else "eval"


# ---- dynamic sizes -------------------------------------------------------------------------


SIZE = re.compile(r"(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)(?:\s*\*\s*(\d+))?(?:\s*([+-])\s*(\d+))?")
Row = collections.namedtuple("Row", "path dim name factor offset least most")


def parse_dynamic(text: str) -> list[Row]:
    """'0:0=batch:1:64,mask.ids:1=2*half' as rows: path of the input, dimension, size = factor * name + offset, least, most."""
    rows = []
    for item in text.split(","):
        found = re.fullmatch(r"\s*([\w.]+):(\d+)=([^:]+?)(?::(\d+):(\d+))?\s*", item)
        size = SIZE.fullmatch(found[3]) if found else None
        if not size or (size[1] and size[3]):
            raise UsageError(f"--dynamic: '{item}' is not INPUT:DIM=SIZE or INPUT:DIM=SIZE:MIN:MAX, with SIZE as batch or 2*half+1")
        offset = int(f"{size[4]}{size[5]}") if size[4] else 0
        least, most = found[4] and int(found[4]), found[5] and int(found[5])
        rows.append(Row(found[1].split("."), int(found[2]), size[2], int(size[1] or size[3] or 1), offset, least, most))
    return rows


def dynamic_dims(rows: list[Row]) -> dict:
    """One torch Dim a name; its bounds may stand at any of its uses."""
    bounds = {}
    for row in rows:
        if row.least is None:
            bounds.setdefault(row.name, None)
        elif bounds.get(row.name) not in (None, (row.least, row.most)):
            raise UsageError(f"--dynamic: two different ranges for '{row.name}'")
        else:
            bounds[row.name] = (row.least, row.most)
    return {
        name: torch.export.Dim(name, min=limit[0], max=limit[1]) if limit else torch.export.Dim(name)
        for name, limit in bounds.items()
    }


def size_of(row: Row, dims: dict):
    size = dims[row.name] if row.factor == 1 else row.factor * dims[row.name]
    return size if row.offset == 0 else size + row.offset


def find_input(path: list[str], parameters, args: tuple):
    """The keys that lead to an input among forward's bound arguments: 1 may be the second of *args."""
    head, rest = path[0], path[1:]
    if not head.isdigit():
        return path
    for place, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL and place <= int(head) < len(args):
            return [parameter.name, str(int(head) - place), *rest]
        if place == int(head) < len(args):
            return [parameter.name, *rest]
    return None


def child(value, key: str):
    """(what a container holds under the key, the key as the container has it); (None, None): nothing."""
    if isinstance(value, dict):
        return next(((value[k], k) for k in value if str(k) == key), (None, None))
    if isinstance(value, (list, tuple)) and key.isdigit() and int(key) < len(value):
        return value[int(key)], int(key)
    return None, None


def open_shapes(value):
    """A tree like the value's, None for each leaf, in containers that can be filled in."""
    if isinstance(value, dict):
        return {key: open_shapes(part) for key, part in value.items()}
    return [open_shapes(part) for part in value] if isinstance(value, (list, tuple)) else None


def closed_shapes(shapes, value):
    """The same in the value's own kinds of containers."""
    if isinstance(value, dict):
        return {key: closed_shapes(shapes[key], part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [closed_shapes(shape, part) for shape, part in zip(shapes, value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    return shapes


def dynamic_shapes(text: str | None, model, args: tuple, kwargs: dict):
    """What torch.export calls dynamic_shapes: by parameter of forward, a tree like the argument's."""
    if not text:
        return None
    rows = parse_dynamic(text)
    dims = dynamic_dims(rows)
    signature = inspect.signature(model.forward)
    try:
        bound = dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise UsageError(f"forward does not take these inputs: {error}") from error
    shapes = open_shapes(bound)
    for row in rows:
        spelled = ".".join(row.path)
        keys = find_input(row.path, list(signature.parameters.values()), args) or []
        value, at, last = bound, shapes, None
        for key in keys:
            at = at if last is None else at[last]
            value, last = child(value, key)
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"--dynamic: there is no tensor input {spelled}")
        if row.dim >= value.dim():
            raise UsageError(f"--dynamic: input {spelled} has {value.dim()} dimensions, there is no {row.dim}")
        at[last] = {**(at[last] or {}), row.dim: size_of(row, dims)}
    return closed_shapes(shapes, bound)


# ---- export --------------------------------------------------------------------------------


@contextlib.contextmanager
def checkpoints_inlined():
    """Yields a list, not empty once the model used one: activation checkpoints with use_reentrant=True are what they compute.

    They are an autograd.Function, whose backward torch.export does not keep.
    """
    function, used = torch.utils.checkpoint.CheckpointFunction, []

    def apply(run_function, preserve_rng_state, *args):
        used.append(run_function)
        return run_function(*args)

    function.apply = staticmethod(apply)
    try:
        yield used
    finally:
        del function.apply


def export_training(model, args: tuple, kwargs: dict, shapes, strict: bool = False):
    """The exported program with training-mode operators, mutations in the nodes."""
    if strict:
        try:
            return export_as(model, args, kwargs, shapes, True)
        except ExportError as error:
            print(f"export_model: warning: strict mode cannot trace the model, so it is exported without: activation checkpoints and"
                  f" annotations are not kept ({str(error).splitlines()[0]})", file=sys.stderr)
    with checkpoints_inlined() as used:
        program = export_as(model, args, kwargs, shapes, False)
    if used:
        print("export_model: note: regions of torch.utils.checkpoint with use_reentrant=True are exported as what they compute, without"
              " their recomputation", file=sys.stderr)
    return program


def export_as(model, args: tuple, kwargs: dict, shapes, strict: bool):
    try:
        program = torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=strict)
        if program.dialect != "TRAINING":  # PyTorch 2.6 gives them under another name
            program = torch.export.export_for_training(model, args, kwargs, dynamic_shapes=shapes, strict=strict)
    except Exception as error:
        raise ExportError(f"torch.export refused the model: {reason(error)}") from error
    return program


def export_core(program):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PyTorch warns about itself
            return program.run_decompositions()
    except Exception as error:
        raise ExportError(f"run_decompositions() failed: {reason(error)}") from error


def library_folders() -> list[str]:
    """Where packages and the standard library stand on this machine."""
    folders = [sysconfig.get_path(key) for key in ("purelib", "platlib", "stdlib", "platstdlib")]
    folders += site.getsitepackages() + [site.getusersitepackages()]
    return [os.path.realpath(folder) for folder in folders if folder]


def portable_path(path: str, folders: list[str]) -> str:
    """A path relative to the first folder that holds it, or its last part."""
    real = os.path.realpath(path)
    for folder in folders:
        if real.startswith(os.path.join(folder, "")):
            return os.path.relpath(real, folder).replace(os.sep, "/")
    return path if path.startswith("<") else os.path.basename(path)


def portable_trace(trace: str, folders: list[str]) -> str:
    return re.sub(r'(?<=File ")([^"]+)(?=")', lambda found: portable_path(found[1], folders), trace)


def make_paths_portable(program) -> None:
    """Source locations in the archive must not tell where the exporting machine keeps its files."""
    folders = library_folders() + [os.path.realpath(os.getcwd())]
    for graph in program.graph_module.modules():
        for node in getattr(getattr(graph, "graph", None), "nodes", ()):
            if node.meta.get("stack_trace"):
                node.meta["stack_trace"] = portable_trace(node.meta["stack_trace"], folders)


def count_nodes(program) -> int:
    return len(program.graph.nodes)


def count_ops(program) -> dict[str, int]:
    """Calls by operator, sub-graphs included, in order of first call."""
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    calls = (str(node.target) for graph in graphs for node in graph.nodes if node.op == "call_function")
    return dict(collections.Counter(calls))


# ---- expected results ----------------------------------------------------------------------


def expected_values(model, args: tuple, kwargs: dict, seed: int, notes: dict) -> dict:
    """The values of one step; an error if they depend on random numbers."""
    try:
        values, again = run_step(model, args, kwargs, seed, notes), run_step(model, args, kwargs, seed + 1)
    except Exception as error:
        raise ExportError(f"the eager training step failed: {reason(error)}") from error
    for key, value in values.items():
        if key.startswith("output.") and not same(value, again[key]):
            raise ExportError(
                f"{key} differs from run to run: the model draws random numbers (dropout?), so there is nothing fixed"
                " to compare with. Set their probability to 0, export in evaluation mode (--eval), or use --no-expected"
            )
    return drop_unchanged_inputs(values)


# ---- what the export lost --------------------------------------------------------------------


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal but for the order of sums."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point() and not a.is_complex():
        return torch.equal(a, b)
    low = a.dtype in (torch.float16, torch.bfloat16)
    a, b = (x.to(torch.complex128 if x.is_complex() else torch.float64) for x in (a, b))
    sizes = a.abs()[a.abs().isfinite()]
    scale = float(sizes.max()) if sizes.numel() else 0.0
    return torch.allclose(a, b, rtol=2e-2 if low else 1e-3, atol=(2e-2 if low else 1e-5) * max(scale, 1e-6), equal_nan=True)


def why_gradient(notes: dict) -> str:
    if notes["functions"]:
        return f"; torch.export does not keep the backward of autograd.Function {', '.join(notes['functions'])}"
    return ""


def why_buffer(name: str, eager: torch.Tensor, exported: torch.Tensor, notes: dict) -> str:
    if name in notes["reassigned"]:
        return "; forward assigns another tensor to it: write into it instead (copy_, add_)"
    if close(notes["forward_buffers"][name], exported) and not close(eager, exported):
        return "; eager PyTorch updates it again in the backward, where activation checkpointing computes the forward anew"
    return ""


def differences(eager: dict, exported: dict, notes: dict) -> list[str]:
    """One line for each result of eager PyTorch that the exported program does not have, or has otherwise."""
    lost = []
    for key, value in eager.items():
        kind, _, name = key.partition(".")
        if kind in ("input", "tangent") or (key in exported and close(value, exported[key])):
            continue
        what = f"{key} is lost" if key not in exported else f"{key} differs"
        if kind == "grad":
            what += why_gradient(notes)
        elif kind == "buffer_after" and key in exported:
            what += why_buffer(name, value, exported[key], notes)
        lost.append(what)
    lost += [f"{key} is there, and eager PyTorch gives none" + why_gradient(notes) for key in exported
             if key.startswith("grad.") and key not in eager]
    return lost


def module_of(program):
    """The exported program as a module that trains; the checks of its sizes are torch.export's own business."""
    takes_guards = "check_guards" in inspect.signature(program.module).parameters
    return program.module(check_guards=False) if takes_guards else program.module()


def what_was_lost(program, args: tuple, kwargs: dict, seed: int, eager: dict, notes: dict) -> list[str]:
    try:
        return differences(eager, drop_unchanged_inputs(run_step(module_of(program), args, kwargs, seed)), notes)
    except Exception as error:
        return [f"the exported program does not run in PyTorch: {reason(error)}"]


def warn_no_gradient(model, values: dict) -> None:
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and f"grad.{name}" not in values:
            print(f"export_model: warning: no gradient reaches parameter {name}", file=sys.stderr)


# ---- files ---------------------------------------------------------------------------------


def install(temporary: pathlib.Path, out: pathlib.Path) -> None:
    """Moves the finished files into place; files of an earlier export that are not made anew go."""
    out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (temporary / name).exists():
            os.replace(temporary / name, out / name)
        else:
            (out / name).unlink(missing_ok=True)


PYTORCH_NAMESPACES = ("aten", "prims")


def own_operators(program) -> str:
    """Schemas of the operators that PyTorch got from elsewhere, a line each: a reader of the archive cannot know them."""
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    targets = (node.target for graph in graphs for node in graph.nodes if node.op == "call_function")
    schemas = {str(t._schema) for t in targets if hasattr(t, "_schema") and t.namespace not in PYTORCH_NAMESPACES}
    return "".join(line + "\n" for line in sorted(schemas))


def save_program(program, path: pathlib.Path, keep_paths: bool) -> None:
    if not keep_paths:
        make_paths_portable(program)
    operators = own_operators(program)
    try:
        torch.export.save(program, str(path), extra_files={"operators.txt": operators} if operators else None)
    except Exception as error:
        raise ExportError(f"torch.export.save failed for {path.name}: {reason(error)}") from error


def write_all(options, model, args: tuple, kwargs: dict, folder: pathlib.Path) -> dict:
    """Makes every file in `folder`; returns what info.json holds."""
    mode = set_mode(model, options.mode)
    shapes = dynamic_shapes(options.dynamic, model, args, kwargs)
    notes = {}
    values = None if options.no_expected else expected_values(model, args, kwargs, options.seed, notes)
    training = export_training(model, args, kwargs, shapes, options.strict)
    info = {"torch": torch.__version__.split("+")[0], "seed": options.seed, "mode": mode}
    info |= {"train_nodes": count_nodes(training), "train_ops": count_ops(training)}
    core = export_core(training) if options.core else None
    save_program(training, folder / "train.pt2", options.keep_paths)
    if core is not None:
        save_program(core, folder / "core.pt2", options.keep_paths)
        info |= {"core_nodes": count_nodes(core), "ops": count_ops(core)}
    if values is not None:
        warn_no_gradient(model, values)
        values = without_unused_buffers(training, values, notes)
        info["lost"] = what_was_lost(training, args, kwargs, options.seed, values, notes)
        for line in info["lost"]:
            print(f"export_model: warning: in the exported program {line}", file=sys.stderr)
        info["float64"] = None if options.no_float64 else float64_file(model, args, kwargs, options.seed, values, folder)
        save_file(values, str(folder / "expected.safetensors"))
        for path in folder.glob("expected*.safetensors"):
            shutil.copymode(folder / "train.pt2", path)
    (folder / "info.json").write_text(json.dumps(info, indent=1) + "\n")
    return info


def float64_file(model, args: tuple, kwargs: dict, seed: int, values: dict, folder: pathlib.Path) -> bool:
    """Was expected.f64.safetensors written? A model that cannot run in float64 is no error: differences are not judged then."""
    try:
        records = float64_records(model, args, kwargs, seed, values)
    except Float64Error as error:
        print(f"export_model: warning: no expected.f64.safetensors: {reason(error)}; --against f64 cannot judge this model",
              file=sys.stderr)
        return False
    save_file(records, str(folder / "expected.f64.safetensors"))
    return True


def without_unused_buffers(program, values: dict, notes: dict) -> dict:
    """Strict mode leaves a buffer that forward does not read out of the archive; one that forward assigns is lost, which is told."""
    kept = set(program.graph_signature.inputs_to_buffers.values()) | notes["reassigned"]
    return {key: value for key, value in values.items()
            if not key.startswith("buffer_after.") or key.removeprefix("buffer_after.") in kept}


def export_to(options) -> None:
    out = pathlib.Path(options.out_dir)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is not a folder")
    model, args, kwargs = make_model(load_factory(options.factory), options.seed)
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    temporary = out.absolute().with_name(f".{out.absolute().name}.{os.getpid()}.tmp")
    temporary.mkdir()
    try:
        info = write_all(options, model, args, kwargs, temporary)
        install(temporary, out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    report(out, info)


def report(out: pathlib.Path, info: dict) -> None:
    for name in FILES:
        if (out / name).exists():
            print(f"{out / name}  {(out / name).stat().st_size} bytes")
    calls = sum(info["train_ops"].values())
    print(f"{calls} calls of {len(info['train_ops'])} operators, exported by PyTorch {info['torch']}")


# ---- the command ---------------------------------------------------------------------------


def reason(error: BaseException) -> str:
    """The kind and the text of an error, at most some twenty lines."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    if len(lines) > 20:
        lines = lines[:20] + ["... (--traceback shows everything)"]
    return f"{type(error).__name__}: " + "\n  ".join(lines)


def parse_options(argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="export_model.py",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("factory", metavar="MODULE_OR_FILE:FACTORY", help="a dotted module or a .py file, and a function in it")
    parser.add_argument("out_dir", metavar="OUT_DIR", help="folder for the files; made if absent")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="torch.manual_seed before the factory runs (default 0)")
    parser.add_argument("--core", action="store_true", help="also write core.pt2, decomposed to core ATen")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="trace with torch.export's strict mode, which alone keeps activation checkpoints and annotations; without it, and a"
        " warning, if that cannot trace the model",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--train", dest="mode", action="store_const", const="train", help="put the model into training mode first")
    mode.add_argument("--eval", dest="mode", action="store_const", const="eval",
                      help="put the model into evaluation mode first (default: as the factory returns it)")
    parser.add_argument("--no-float64", action="store_true", help="write no expected.f64.safetensors, which takes a few runs more")
    parser.add_argument("--no-expected", action="store_true", help="do not run the model, write no expected.safetensors")
    parser.add_argument(
        "--dynamic",
        metavar="SPEC",
        help="sizes that may vary: INPUT:DIM=SIZE[:MIN:MAX], separated by commas; equal names are equal sizes",
    )
    parser.add_argument(
        "--keep-paths",
        action="store_true",
        help="keep absolute source paths in the archive (default: relative to the current folder or the library)",
    )
    parser.add_argument("--traceback", action="store_true", help="show Python's traceback when something fails")
    return parser.parse_args(argv)


def main(argv=None) -> int:
    options = parse_options(argv)
    if torch is None:
        print(f"export_model: error: {WHY_NO_TORCH}; pip install -r tools/requirements-export.txt", file=sys.stderr)
        return 2
    try:
        export_to(options)
    except (UsageError, ExportError, OSError) as error:
        if options.traceback:
            traceback.print_exc()
        print(f"export_model: error: {error}", file=sys.stderr)
        return 1 if isinstance(error, ExportError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
