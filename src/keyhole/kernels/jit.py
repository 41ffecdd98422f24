"""The two decorators of every kernel, which hold every compile option."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be reordered and multiply-adds fused, which is what lets a dot product use vector
# instructions. Nothing may assume that NaN or infinity never come: their comparisons stay IEEE's.
FASTMATH = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[P, R], *, inline: bool) -> Callable[P, R]:
    """Compile `function` on its first call; it runs without the GIL and is cached on disk."""

    def jit(cache: bool) -> Callable[P, R]:
        result: Callable[P, R] = numba.njit(
            nogil=True, cache=cache, fastmath=FASTMATH, error_model="numpy", forceinline=inline
        )(function)
        return result

    try:
        return jit(cache=True)
    except RuntimeError:
        # Numba found no folder to write to, neither here nor at home: compile in every process.
        return jit(cache=False)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function that Python calls, or that is too long to be worth copying into its callers."""
    return compiled(function, inline=False)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A piece of a kernel's inner loop, copied into its callers.

    A call would hand over every array as a dozen numbers, which costs as much as a short loop.
    """
    return compiled(function, inline=True)
