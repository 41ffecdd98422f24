"""The names of a bandit's arms, and the parameter of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NoReturn, TypeAlias

import numpy as np

from keyhole import checks
from keyhole.core.kernels import Ints
from keyhole.errors import InvalidValue, UnknownArm, shown

Arm: TypeAlias = str | int

MOST_ARMS = 10_000_000


class Arms:
    """An ordered set of names; `parameter_of[k]` is the parameter of arm k, its own or shared.

    Parameters
    ----------
    names : iterable of str or int
        The names.
    shared : bool
        Whether all arms have one parameter.
    parameter_of : sequence of int, optional
        The parameter of each arm; by default 0, 1, ..., or 0 if it is shared.
    is_open : bool, default False
        Whether unknown names are allowed, since the one parameter describes every arm.
    is_hybrid : bool, default False
        Whether the one parameter has a shared part and one for each arm.
    """

    def __init__(
        self,
        names: Iterable[object],
        *,
        shared: bool,
        parameter_of: Sequence[int] | None = None,
        is_open: bool = False,
        is_hybrid: bool = False,
    ) -> None:
        if isinstance(names, str | bytes) or not checks.is_listing(names):
            raise InvalidValue(f"arms must be a list of names, got {shown(names)}")
        self.names = tuple(arm_name(name) for name in names)
        self.shared, self.is_open, self.is_hybrid = shared, is_open, is_hybrid
        if not self.names and not is_open:
            raise InvalidValue("at least one arm is needed, got none")
        if len(set(self.names)) < len(self.names):
            twice = Counter(self.names).most_common(1)[0][0]
            raise InvalidValue(f"every arm needs a name of its own, but {twice!r} comes twice")
        own = [0] * len(self.names) if shared else range(len(self.names))
        self.parameter_of: Ints = np.array(
            own if parameter_of is None else parameter_of, dtype=np.int64
        )
        self.parameters: dict[Arm, int] = dict(
            zip(self.names, self.parameter_of.tolist(), strict=True)
        )

    @property
    def n_parameters(self) -> int:
        """The number of parameters."""
        return 1 if self.shared else len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.parameters

    def parameter(self, name: Arm) -> int:
        """Return the parameter of the arm of this name."""
        try:
            return self.parameters[name]
        except (KeyError, TypeError):
            if self.is_open:
                return 0
            self.unknown(name)

    def parameters_of(self, names: Sequence[Arm]) -> Ints:
        """Return the parameters of many arms, (n,)."""
        try:
            found = map(self.parameters.__getitem__, names)
            return np.fromiter(found, np.int64, len(names))
        except (KeyError, TypeError):
            return np.array([self.parameter(name) for name in names], dtype=np.int64)

    def unknown(self, name: object) -> NoReturn:
        """Raise `UnknownArm` for a name that no arm has."""
        known = ", ".join(map(repr, self.names[:10])) + (", ..." if len(self.names) > 10 else "")
        raise UnknownArm(f"there is no arm {shown(name)}; the arms are {known}") from None

    def among(self, names: Iterable[object]) -> Arms:
        """Return some of these arms, in the order given, with their parameters."""
        wanted = Arms(names, shared=self.shared).names
        return self.named(wanted, [self.parameter(name) for name in wanted])

    def named(self, names: Iterable[object], parameter_of: Sequence[int] | None = None) -> Arms:
        """Return other arms of the same kind.

        Parameters
        ----------
        names : iterable of str or int
            Their names.
        parameter_of : sequence of int, optional
            Their parameters.
        """
        return Arms(
            names,
            shared=self.shared,
            parameter_of=parameter_of,
            is_open=self.is_open,
            is_hybrid=self.is_hybrid,
        )

    def blocks(self, names: Sequence[Arm]) -> Ints:
        """Return the places of some arms among these."""
        place = {name: k for k, name in enumerate(self.names)}
        for name in names:
            if name not in place:
                self.unknown(name)
        return np.array([place[name] for name in names], dtype=np.int64)

    def plus(self, names: Iterable[object]) -> Arms:
        """Return these arms and then others."""
        more = Arms(names, shared=self.shared, is_open=self.is_open).names
        if taken := [name for name in more if name in self]:
            raise InvalidValue(f"arm {taken[0]!r} is there already")
        return self.named(self.names + more)


def arm_name(name: object) -> Arm:
    """Return a name that a file or JSON leaves unchanged: a string or a whole number."""
    if isinstance(name, str):
        return str(name)
    is_number = isinstance(name, int | np.integer) and not isinstance(name, bool | np.timedelta64)
    if is_number and abs(int(name)) < 2**63:  # type: ignore[call-overload]
        return int(name)  # type: ignore[call-overload, no-any-return]
    raise InvalidValue(
        f"an arm's name must be a string, or a whole number below 2**63, got {shown(name)}"
    )
