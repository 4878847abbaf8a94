#!/usr/bin/env python3
"""What the host does for a step on a GPU, counted: its own instructions, and the calls of the driver that it makes.

    bench/step/host_work.py [BUILD [MODEL.pt2]]

A model trains for some steps and for some more on the driver's double (BUILD/tests/cuda-double) under valgrind's callgrind;
the difference is told by step, with the memory that is asked for. What the double itself does is not counted, making
random inputs is told apart.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FEW, MORE = 3, 7  # steps; the double is slow
PIPELINE = """aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-cuda}]
run: {device: cuda, train: {steps: 1, optimizer: adamw, lr: 1e-4, data: random, log-every: 100000}}
"""
ALLOCATIONS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"}
INPUTS = {"aoth_random_normal", "aoth_random_below", "multiply", "aoth_walk_next", "draw"}


def read(profile):
    """Self cost by (object, function), and calls by (caller, callee), of a callgrind file with compressed names."""
    names = collections.defaultdict(dict)

    def name(kind, text):
        number, said = re.match(r"\((\d+)\)(?: (.*))?$", text).groups()
        if said is not None:
            names[kind][number] = said
        return names[kind][number]

    cost, calls = collections.Counter(), collections.Counter()
    place = function = callee_place = callee = None
    is_call = False
    for line in profile.open():
        key, _, value = line.rstrip("\n").partition("=")
        if key == "ob":
            place = name("ob", value)
        elif key == "fn":
            function, callee_place = (place, name("fn", value)), None
        elif key == "cob":
            callee_place = name("ob", value)
        elif key == "cfn":
            callee = name("fn", value)
        elif key == "calls":
            calls[function, (callee_place or place, callee)] += int(value.split()[0])
            is_call, callee_place = True, None
        elif function and re.match(r"[+*\-\d]", line):
            if not is_call:
                cost[function] += int(line.split()[1])
            is_call = False
    return cost, calls


def is_ours(place):
    return pathlib.Path(place).name == "aothost" or "/lib/aothost/" in place


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    model = sys.argv[2] if len(sys.argv) > 2 else ROOT / "tests/fixtures/models/bert_tiny/train.pt2"
    double = str(build / "tests/cuda-double")
    profiles = {}
    with tempfile.TemporaryDirectory() as folder:
        pipeline = pathlib.Path(folder) / "step.yaml"
        pipeline.write_text(PIPELINE)
        environment = os.environ | {"LD_LIBRARY_PATH": double, "AOT_NVRTC": double, "AOT_CACHE_DIR": folder}
        for steps in (1, FEW, MORE):  # the first fills the cache
            command = [build / "bin/aothost", "run", pipeline, "--model", model, "--set", f"run.train.steps={steps}"]
            profile = pathlib.Path(folder) / str(steps)
            if steps > 1:
                command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile}"] + command
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            if steps > 1:
                profiles[steps] = read(profile)
    (cost, calls), (few_cost, few_calls) = profiles[MORE], profiles[FEW]
    n = MORE - FEW
    own = {at[1]: (cost[at] - few_cost[at]) / n for at in cost if is_ours(at[0])}
    inputs = sum(v for k, v in own.items() if k in INPUTS)
    print(f"{model}: {sum(own.values()) - inputs:.0f} instructions of ours a step, and {inputs:.0f} for random inputs")
    for function in sorted(own, key=own.get, reverse=True)[:12]:
        print(f"{own[function]:10.0f}  {function}")
    driver, memory = collections.Counter(), collections.Counter()
    for (caller, callee), count in calls.items():
        more = (count - few_calls[caller, callee]) / n
        if is_ours(caller[0]) and pathlib.Path(callee[0]).name == "libcuda.so.1":
            driver[callee[1]] += more
        elif is_ours(caller[0]) and not is_ours(callee[0]) and callee[1] in ALLOCATIONS and more:
            memory[caller[1]] += more
    print(f"{sum(memory.values()):.1f} allocations a step" + "".join(f"\n{memory[f]:10.1f}  {f}" for f in memory))
    print("calls of the driver a step")
    for function, count in driver.most_common():
        if count > 0:
            print(f"{count:10.1f}  {function}")


if __name__ == "__main__":
    main()
