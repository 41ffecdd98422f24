"""`Recipe`: the interface of features to a learner."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

# Options of features, and of a learner without any.
OPTIONS = ("intercept", "standardize", "missing", "clip", "clip_rewards")


@runtime_checkable
class Recipe(Protocol):
    """A frozen recipe from records to columns of numbers: `Features`, or `Transformed`."""

    @property
    def intercept(self) -> Any:
        """True if each arm has a constant."""

    @property
    def standardize(self) -> Any:
        """True if features are converted to units of their own spread."""

    @property
    def missing(self) -> Any:
        """The replacement of missing entries."""

    @property
    def clip(self) -> Any:
        """The limit to how far a feature may be from its middle, in units."""

    @property
    def clip_rewards(self) -> Any:
        """True if the first 32 rewards have this limit, too."""

    def start(self) -> Any:
        """Return the encoder of a recipe that has seen no record."""
