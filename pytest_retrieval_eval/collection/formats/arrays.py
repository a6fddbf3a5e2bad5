"""Arrays that are shared, and therefore closed against writing."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy.typing as npt

Array = TypeVar("Array", bound="npt.NDArray[Any]")


def read_only(array: Array) -> Array:
    """The same array, which nobody can write to any more."""
    array.flags.writeable = False
    return array
