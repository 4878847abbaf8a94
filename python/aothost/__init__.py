"""aothost for PyTorch: a backend of torch.compile, and whole training steps as one program."""

from ._aothost import Error
from .step import Step, compile_step

__all__ = ["Error", "Step", "compile_step"]
