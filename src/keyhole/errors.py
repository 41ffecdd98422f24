"""Every exception that Keyhole raises on purpose.

    KeyholeError
    ├── InvalidValue (ValueError)     a number, shape or setting that cannot be used
    │   └── UnknownArm                an arm that the bandit does not have
    ├── FileError (ValueError)        a file that is not what was saved, or not all of it
    ├── DataUnavailable               a data set that is neither here nor can be downloaded
    └── MissingExtra (ImportError)    a part of Keyhole whose packages are not installed

Ctrl-C during a simulation raises `SimulationInterrupted`, a KeyboardInterrupt that carries what was
finished.

A message says what came, what is allowed and, where there is one, the usual fix.
"""

from importlib.metadata import PackageNotFoundError, distribution


class KeyholeError(Exception):
    """The root of every exception of Keyhole's own."""


class InvalidValue(KeyholeError, ValueError):
    """A number, a shape or a setting that cannot be used; nothing was changed."""


class UnknownArm(InvalidValue):
    """An arm that the bandit does not have."""


class FileError(KeyholeError, ValueError):
    """A file that is truncated, foreign or of a newer format; nothing was loaded."""


class DataUnavailable(KeyholeError):
    """A data set that is not here and cannot be downloaded; the message has the two ways out."""


class MissingExtra(KeyholeError, ImportError):
    """A part of Keyhole whose packages are not installed; the message has the line that helps."""


def install_line(extra: str) -> str:
    """Return the command that installs an extra.

    Parameters
    ----------
    extra : str
        Such as "lab".

    Returns
    -------
    str
        With the name of the package if that came from a package index, and otherwise with the
        folder of the sources, which the command has to be run in: no index need have it.
    """
    try:
        from_index = distribution("keyhole").read_text("direct_url.json") is None
    except PackageNotFoundError:
        from_index = False
    return f"pip install '{'keyhole' if from_index else '.'}[{extra}]'"
