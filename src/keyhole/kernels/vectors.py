"""Four numbers at a time, by a processor's vector instructions.

A compiler finds them by itself in loops over many numbers, unless these may be NaN and the largest
is sought. Loops over the rows of a small matrix, or of a triangle, are too short for it. There they
are asked for. Each function says in NumPy what it does, and that is what runs with compiling
switched off. Compiled, it is an instruction or a few, which but for `total` round alike wherever
they are used.
"""

# mypy: disable-error-code="misc,call-arg,no-untyped-call"
# ruff: noqa: ARG001, ARG005, D103 - Numba goes by names of arguments, and is not typed itself

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_model

from keyhole.kernels.types import Floats

# An array of four to NumPy, a register to compiled code.
Four: TypeAlias = Any


def load(row: Floats, j: int) -> Four:
    """row[j : j + 4]."""
    assert 0 <= j <= row.size - 4
    return row[j : j + 4].copy()


def store(row: Floats, j: int, four: Four) -> None:
    """row[j : j + 4] = four."""
    assert 0 <= j <= row.size - 4
    row[j : j + 4] = four


def spread(x: float) -> Four:
    """x, four times."""
    return np.full(4, x)


def multiply_add(a: Four, b: Four, c: Four) -> Four:
    """a b + c, each."""
    return a * b + c


def total(four: Four) -> float:
    """Their sum."""
    return float(four.sum())


def totals(a: Four, b: Four, c: Four, d: Four) -> Four:
    """The sum of each."""
    return np.array([a.sum(), b.sum(), c.sum(), d.sum()])


def first(n: int, a: Four, b: Four) -> Four:
    """The first n of a, and from there on b's."""
    return np.where(np.arange(4) < n, a, b)


def larger(a: Four, b: Four) -> Four:
    """The larger of each; b's where either is NaN."""
    return np.where(a > b, a, b)


def largest(four: Four) -> float:
    """The largest of them, if none is NaN."""
    return float(four.max())


def number(four: Four, place: int) -> float:
    """One of them."""
    return float(four[place])


class FourType(types.Type):
    """Four numbers as compiled code knows them."""

    def __init__(self) -> None:
        super().__init__(name="Four")


FOUR = FourType()
NUMBER = ir.DoubleType()
REGISTER = ir.VectorType(NUMBER, 4)


@register_model(FourType)
class FourModel(models.PrimitiveModel):
    """They are one register."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, REGISTER)


def address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Where in memory the four of a row begin."""
    row = context.make_array(signature.args[0])(context, builder, args[0])
    start = builder.gep(row.data, [args[1]], inbounds=True)
    return builder.bitcast(start, REGISTER.as_pointer())


def plain(row: Any) -> Any:
    """The type of a row, which compiled code takes as it comes: it must be what it is taken for."""
    if row.ndim != 1 or row.layout != "C" or row.dtype != types.float64:
        raise TypingError(f"four numbers at a time are floats of a row, side by side, not {row}")
    return row


def mixed(builder: Any, a: Any, b: Any, places: list[int]) -> Any:
    """Of the numbers of a and then of b, those in four places."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 4), places))


def spread_out(builder: Any, x: Any, kind: Any) -> Any:
    """A register of one number or place, four times."""
    alone = builder.insert_element(ir.Constant(kind, ir.Undefined), x, ir.IntType(32)(0))
    return mixed(builder, alone, alone, [0, 0, 0, 0])


@intrinsic
def load_four(_: Any, row: Any, j: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(address(context, builder, signature, args), align=8)

    return FOUR(plain(row), types.intp), emit


@intrinsic
def store_four(_: Any, row: Any, j: Any, four: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], address(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    if not row.mutable:
        raise TypingError("four numbers cannot be stored in an array that is read-only")
    return types.void(plain(row), types.intp, FOUR), emit


@intrinsic
def spread_four(_: Any, x: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return spread_out(builder, args[0], REGISTER)

    return FOUR(types.float64), emit


@intrinsic
def multiply_add_four(_: Any, a: Any, b: Any, c: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Fused wherever the processor can, whatever is around. Of a product and a sum that depends
        # on what is: the same numbers would be rounded in one way by one kernel, and otherwise by
        # the next.
        kind = ir.FunctionType(REGISTER, [REGISTER] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v4f64")
        return builder.call(fused, args)

    return FOUR(FOUR, FOUR, FOUR), emit


@intrinsic
def total_four(_: Any, four: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, name = ir.FunctionType(NUMBER, [NUMBER, REGISTER]), "llvm.vector.reduce.fadd.v4f64"
        add_up = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add_up, [NUMBER(-0.0), args[0]], fastmath=("reassoc",))

    return types.float64(FOUR), emit


@intrinsic
def totals_four(_: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def halves(a: Any, b: Any) -> Any:
            even, odd = mixed(builder, a, b, [0, 4, 2, 6]), mixed(builder, a, b, [1, 5, 3, 7])
            return builder.fadd(even, odd)

        ab, cd = halves(args[0], args[1]), halves(args[2], args[3])
        low, high = mixed(builder, ab, cd, [0, 1, 4, 5]), mixed(builder, ab, cd, [2, 3, 6, 7])
        return builder.fadd(low, high)

    return FOUR(FOUR, FOUR, FOUR, FOUR), emit


def larger_of(builder: Any, a: Any, b: Any) -> Any:
    """The larger of each, by the one instruction that there is for it."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def larger_four(_: Any, a: Any, b: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return larger_of(builder, args[0], args[1])

    return FOUR(FOUR, FOUR), emit


@intrinsic
def largest_four(_: Any, four: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        four = args[0]
        four = larger_of(builder, four, mixed(builder, four, four, [2, 3, 0, 1]))
        four = larger_of(builder, four, mixed(builder, four, four, [1, 0, 3, 2]))
        return builder.extract_element(four, ir.IntType(32)(0))

    return types.float64(FOUR), emit


@intrinsic
def number_of_four(_: Any, four: Any, place: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return types.float64(FOUR, types.int64), emit


@intrinsic
def first_four(_: Any, n: Any, a: Any, b: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(64), 4)
        limit = spread_out(builder, args[0], kind)
        before = builder.icmp_signed("<", ir.Constant(kind, [0, 1, 2, 3]), limit)
        return builder.select(before, args[1], args[2])

    return FOUR(types.int64, FOUR, FOUR), emit


overload(load)(lambda row, j: lambda row, j: load_four(row, j))
overload(store)(lambda row, j, four: lambda row, j, four: store_four(row, j, four))
overload(spread)(lambda x: lambda x: spread_four(x))
overload(multiply_add)(lambda a, b, c: lambda a, b, c: multiply_add_four(a, b, c))
overload(total)(lambda four: lambda four: total_four(four))
overload(totals)(lambda a, b, c, d: lambda a, b, c, d: totals_four(a, b, c, d))
overload(larger)(lambda a, b: lambda a, b: larger_four(a, b))
overload(largest)(lambda four: lambda four: largest_four(four))
overload(number)(lambda four, place: lambda four, place: number_of_four(four, place))
overload(first)(lambda n, a, b: lambda n, a, b: first_four(n, a, b))
