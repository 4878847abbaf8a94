"""The options of backend="aothost": torch.compile(model, backend="aothost", options={..})."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields
from typing import Any, Mapping


@dataclass(frozen=True)
class Options:
    """What a user may choose. Every stage is a plugin by its name; `plugins` are folders that are searched first."""

    backend: str = "backend-cpu"
    partition: str = "partition-mincut"
    budget: str | None = None  # bytes that a forward may save ("9GiB"), or a share of all ("0.5")
    plugins: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()  # passes between rng and the partition
    settings: tuple[str, ...] = field(default=())  # further settings, as --set of the command
    strict: bool = False  # refuse, by name, what would run in eager
    cache: bool = True  # aothost's compile cache

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> "Options":
        """Checked, with the nearest name for an unknown one."""
        known = {f.name: f for f in fields(Options)}
        values: dict[str, Any] = {}
        for name, value in (given or {}).items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"the options are {', '.join(known)}"
                raise ValueError(f"aothost has no option '{name}'; {hint}")
            if isinstance(known[name].default, tuple) or name == "settings":
                value = (value,) if isinstance(value, str) else tuple(map(str, value))
            elif isinstance(known[name].default, bool):
                if not isinstance(value, bool):
                    raise ValueError(f"aothost's option '{name}' is True or False, not {value!r}")
            elif value is not None and not isinstance(value, (str, int, float)):
                raise ValueError(f"aothost's option '{name}' is a text, not {value!r}")
            else:
                value = None if value is None else str(value)
            values[name] = value
        return Options(**values)
