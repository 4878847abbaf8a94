"""What a side of bench/torch says to the driver: lines of JSON, one for each that it was asked by standard input."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time


def resident(what: str) -> int:
    """Bytes of memory that this process has (VmRSS), or at most had at once (VmHWM)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(what))


class Card:
    """A GPU by its number, as the driver's management library counts it: it needs no context on the GPU."""

    class Memory(ctypes.Structure):  # nvmlMemory_t
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self, number: int = 0):
        self.library, self.card = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(self.card)):
            raise OSError(f"the driver's management library finds no GPU {number}")

    def used(self) -> int:
        """Bytes of the GPU's memory that are in use, by whomever."""
        memory = self.Memory()
        if self.library.nvmlDeviceGetMemoryInfo(self.card, ctypes.byref(memory)):
            raise OSError("the driver does not tell how much memory is in use")
        return memory.used

    def used_at_rest(self) -> int:
        """The same, once it has stayed as it is for half a second: a process that ended gives its memory back a little later."""
        last, since = self.used(), time.monotonic()
        end = since + 20
        while time.monotonic() < min(since + 0.5, end):
            time.sleep(0.05)
            if (now := self.used()) != last:
                last, since = now, time.monotonic()
        return last


class NoAllocator:
    """Of a side that takes its memory from the GPU once. Else: what takes it in pieces, and gives some of it back."""

    def held(self) -> int:
        """Bytes of the GPU that it has now."""
        return 0

    def most_held(self) -> int:
        """At most, since forget_most()."""
        return 0

    def forget_most(self) -> None:
        pass


def serve(load, start, step, device: str = "cpu", allocator=NoAllocator(), number: int = 0) -> None:
    """load() is not measured; start() prepares what step() repeats; step() trains once and returns its loss.

    {"do": "start"}            -> first_ms (start and one step), loss (of that step)
    {"do": "steps", "n": 5}    -> ms (of each), loss (of the last)
    {"do": "finish"}           -> peak_bytes, and library_bytes: what the process had before it loaded the model

    On a GPU peak_bytes are those of its memory that are in use after the first step less those that were before the model was
    loaded: others, who wait, keep what they have. The context is part of them. Of an allocator the most that it held in the
    steps after the first counts instead of what it holds then: PyTorch's gives memory back, and takes more of it for a while,
    where cuDNN's algorithms are tried.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints, prints to the standard error
    card = Card(number) if device == "cuda" else None
    used = card.used_at_rest if card else lambda: resident("VmRSS")
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "start":
            before = used()  # the others wait
            load()
            began = time.perf_counter()
            start()
            loss = step()
            answer = {"first_ms": (time.perf_counter() - began) * 1e3, "loss": loss}
            beside = used() - before - allocator.held()
            allocator.forget_most()
        elif request["do"] == "steps":
            ms = []
            for _ in range(request["n"]):
                began = time.perf_counter()
                loss = step()
                ms.append((time.perf_counter() - began) * 1e3)
            answer = {"ms": ms, "loss": loss}
        else:
            answer = {"peak_bytes": beside + allocator.most_held() if card else resident("VmHWM"),
                      "library_bytes": 0 if card else before}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
