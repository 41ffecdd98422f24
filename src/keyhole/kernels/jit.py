"""The three decorators of every kernel, which hold every compile option."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be reordered and multiply-adds fused, which is what lets a dot product use vector
# instructions. Nothing may assume that NaN or infinity never come: their comparisons stay IEEE's.
FASTMATH = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[P, R], *, inline: bool, counts: bool) -> Callable[P, R]:
    """Compile `function` on its first call; it runs without the GIL and is cached on disk.

    counts: whether it may make arrays. Who uses them is then counted, by a locked addition for
    each row that is looked at, which in an inner loop takes longer than all of the arithmetic.
    `_nrt` is how `numba.extending.register_jitable` documents doing without.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "fastmath": FASTMATH,
        "error_model": "numpy",
        "forceinline": inline,
        "_nrt": counts,
    }

    def jit(cache: bool) -> Callable[P, R]:
        result: Callable[P, R] = numba.njit(cache=cache, **options)(function)
        return result

    try:
        return jit(cache=True)
    except RuntimeError:
        # Numba found no folder to write to, neither here nor at home: compile in every process.
        return jit(cache=False)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function that may make arrays, for Python or for other kernels to call."""
    return compiled(function, inline=False, counts=True)


def loop(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that makes no array, and whose looking at parts of arrays costs nothing.

    It may call a `kernel`, but must not be handed an array by one: nobody would let go of it.
    """
    return compiled(function, inline=False, counts=False)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A piece of an inner loop, copied into its callers; it makes no array either.

    A call would hand over every array as a dozen numbers, which costs as much as a short loop.
    """
    return compiled(function, inline=True, counts=False)
