"""aothost for PyTorch: a backend of torch.compile."""

from ._aothost import Error

__all__ = ["Error"]
