"""Every exception that Keyhole raises on purpose.

    KeyholeError
    ├── InvalidValue (ValueError)     a number, shape or setting that cannot be used
    │   ├── UnknownArm                an arm that the bandit does not have
    │   └── AlreadyLearned            a decision whose reward was learned before
    ├── FileError (ValueError)        a file that is not what was saved, or not all of it
    │   ├── FileMissing (FileNotFoundError)   there is no such file or folder
    │   └── FileUnusable (OSError)    the system cannot read or write it: rights, a full disk
    ├── DataUnavailable               a data set that is neither here nor can be downloaded
    └── MissingExtra (ImportError)    a part of Keyhole whose packages are not installed

    KeyholeWarning (UserWarning)      a value that was clipped, rewards that wait for long

Ctrl-C during a simulation raises `SimulationInterrupted`, a KeyboardInterrupt that carries what was
finished.

A message says what came, what is allowed and, where there is one, the usual fix.
"""

from importlib.metadata import distributions


class KeyholeError(Exception):
    """The root of every exception of Keyhole's own."""


class InvalidValue(KeyholeError, ValueError):
    """A number, a shape or a setting that cannot be used; nothing was changed."""


class UnknownArm(InvalidValue):
    """An arm that the bandit does not have."""


class AlreadyLearned(InvalidValue):
    """A decision whose reward this bandit has learned already; nothing was changed."""


class FileError(KeyholeError, ValueError):
    """A file that is truncated, foreign or of a newer format; nothing was loaded."""


class FileMissing(FileError, FileNotFoundError):
    """A file that is not there, or one whose folder is not; nothing was changed."""


class FileUnusable(FileError, OSError):
    """A file that the system cannot read or write; nothing was changed."""


class DataUnavailable(KeyholeError):
    """A data set that is not here and cannot be downloaded; the message has the two ways out."""


class MissingExtra(KeyholeError, ImportError):
    """A part of Keyhole whose packages are not installed; the message has the line that helps."""


class KeyholeWarning(UserWarning):
    """Something that is allowed, was done, and may not be what was meant."""


def shown(value: object) -> str:
    """Show a value in an error: its repr, cut after 200 letters, and never an error of its own."""
    try:
        text = repr(value)
    except Exception:  # Python prints no int of more than 4,300 digits; a repr may do anything
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 200 else f"{text[:200]}..."


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
    # Sources that were built in place describe themselves beside what was installed from them.
    urls = [one.read_text("direct_url.json") for one in distributions(name="keyhole")]
    from_index = bool(urls) and not any(urls)
    return f"pip install '{'keyhole' if from_index else '.'}[{extra}]'"
