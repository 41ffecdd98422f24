"""`Quantity`, a constant with its error and its safe value, and the world it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keyhole.core import Streams
from keyhole.theory.ranges import Floats


class Source(Protocol):
    """The properties of any `World` that expectations over its rounds need."""

    @property
    def eta(self) -> Floats: ...  # noqa: D102
    @property
    def noise_scale(self) -> float: ...  # noqa: D102

    def start(self, source: Streams) -> Any:  # noqa: D102
        ...

    def rounds(self, state: Any, n: int) -> Any:  # noqa: D102
        ...


class Arrays(Source, Protocol):
    """The properties of a world that the theory needs: those of `LinearWorld`."""

    @property
    def sensing_covariance(self) -> Floats: ...  # noqa: D102
    @property
    def observation_covariance(self) -> Floats: ...  # noqa: D102
    @property
    def unseen_covariance(self) -> Floats: ...  # noqa: D102
    @property
    def optimality(self) -> tuple[Floats, Floats]: ...  # noqa: D102
    @property
    def shared_context(self) -> bool: ...  # noqa: D102
    @property
    def is_normal(self) -> bool: ...  # noqa: D102
    @property
    def is_subgaussian(self) -> bool: ...  # noqa: D102
    @property
    def r1(self) -> float: ...  # noqa: D102
    @property
    def r2(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class Quantity:
    """A constant of an instance.

    Parameters
    ----------
    value : float
        The number.
    error : float
        Its standard error; 0 means exact.
    label : str
        Its label in the paper.
    meaning : str
        A description.
    safe : float, optional
        The value that bounds use, where the number is an estimate: a limit on the side on which
        bounds stay true. By default the number itself, which is then exact.
    """

    value: float
    error: float
    label: str
    meaning: str
    safe: float = np.nan

    def __post_init__(self) -> None:
        if np.isnan(self.safe):
            object.__setattr__(self, "safe", self.value)

    def __float__(self) -> float:
        return self.value
