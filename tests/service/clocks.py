"""A clock that is set by hand."""


class Moved:
    """A clock that stands still until it is moved."""

    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time
