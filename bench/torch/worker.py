"""What a side of bench/torch says to the driver: lines of JSON, one for each that it was asked by standard input."""

from __future__ import annotations

import json
import os
import sys
import time


def resident(what: str) -> int:
    """Bytes of memory that this process has (VmRSS), or at most had at once (VmHWM)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(what))


def serve(load, start, step) -> None:
    """load() is not measured; start() prepares what step() repeats; step() trains once and returns its loss.

    {"do": "start"}            -> first_ms (start and one step), loss (of that step)
    {"do": "steps", "n": 5}    -> ms (of each), loss (of the last)
    {"do": "finish"}           -> peak_bytes, and library_bytes: what the process had before it loaded the model
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints, prints to the standard error
    library_bytes = resident("VmRSS")
    load()
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "start":
            began = time.perf_counter()
            start()
            loss = step()
            answer = {"first_ms": (time.perf_counter() - began) * 1e3, "loss": loss}
        elif request["do"] == "steps":
            ms = []
            for _ in range(request["n"]):
                began = time.perf_counter()
                loss = step()
                ms.append((time.perf_counter() - began) * 1e3)
            answer = {"ms": ms, "loss": loss}
        else:
            answer = {"peak_bytes": resident("VmHWM"), "library_bytes": library_bytes}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
