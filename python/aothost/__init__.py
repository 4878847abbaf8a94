"""aothost for PyTorch: a backend of torch.compile, and whole training steps as one program."""

import re

MINIMUM = (2, 10)  # of PyTorch: its tensors have DLPack's C exchange table from here on

try:
    import torch
except ImportError as missing:
    raise ImportError("aothost needs PyTorch 2.10 or later, which it does not install: pip install torch") from missing
if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < MINIMUM:
    raise ImportError(f"aothost needs PyTorch 2.10 or later; this is {torch.__version__}: pip install --upgrade torch")

from ._aothost import Error  # noqa: E402  after the check, which has the clearer message
from .ab import ab  # noqa: E402
from .explain import explain  # noqa: E402
from .step import Step, compile_step  # noqa: E402

__all__ = ["Error", "Step", "ab", "compile_step", "explain"]
