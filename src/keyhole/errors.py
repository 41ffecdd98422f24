"""The exceptions and warnings of Keyhole.

    KeyholeError
    ├── InvalidValue (ValueError)     a number, shape or setting that cannot be used
    │   ├── UnknownArm                an arm that the bandit does not have
    │   ├── AlreadyLearned            a decision whose reward was learned before
    │   ├── UnknownEvent              an id that no decision of a log has
    │   └── ForgottenEvent            a decision that was forgotten
    ├── FileError (ValueError)        a file that is damaged, incomplete or foreign
    │   ├── FileMissing (FileNotFoundError)   there is no such file or folder
    │   └── FileUnusable (OSError)    the system cannot read or write it: rights, a full disk
    ├── DataUnavailable               a data set that is not here and cannot be downloaded
    └── MissingExtra (ImportError)    a part of Keyhole whose packages are not installed

    KeyholeWarning (UserWarning)      a value that was clipped, rewards that are pending for long

Ctrl-C during a simulation raises `SimulationInterrupted`, a KeyboardInterrupt that carries the
finished part.

A message names the value that was given, the values that are allowed and, where there is one, the
usual fix.
"""

from typing import Self


class KeyholeError(Exception):
    """Base class of all exceptions of Keyhole."""


class InvalidValue(KeyholeError, ValueError):
    """A number, a shape or a setting that cannot be used; nothing was changed."""


class UnknownArm(InvalidValue):
    """An arm that the bandit does not have."""


class AlreadyLearned(InvalidValue):
    """A decision whose reward this bandit has learned already; nothing was changed."""


class UnknownEvent(InvalidValue):
    """An id that no decision of the log has; nothing was changed."""


class ForgottenEvent(InvalidValue):
    """A decision that was forgotten, and learns no reward; nothing was changed."""


class FileError(KeyholeError, ValueError):
    """A file that is truncated, foreign or of a newer format; nothing was loaded."""


class FileMissing(FileError, FileNotFoundError):
    """A file that does not exist, or whose folder does not exist; nothing was changed."""


class FileUnusable(FileError, OSError):
    """A file that the system cannot read or write; nothing was changed."""


class DataUnavailable(KeyholeError):
    """A data set that is not here and cannot be downloaded; the message has two remedies."""


class MissingExtra(KeyholeError, ImportError):
    """A part of Keyhole whose packages are not installed; the message has the install line."""


class KeyholeWarning(UserWarning):
    """A warning about an action that was allowed and carried out, but may be unintended."""


class Message(str):
    """The text of a warning that has values of contexts or rewards.

    Parameters
    ----------
    text : str
        The text.
    public : str
        The same without values, for places that must not have them, such as logs of a service.
    """

    __slots__ = ("public",)
    public: str

    def __new__(cls, text: str, public: str) -> Self:
        """Return a text that knows another one."""
        made = super().__new__(cls, text)
        made.public = public
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        """Return what a copy is made by: both texts."""
        return type(self), (str(self), self.public)


def shown(value: object) -> str:
    """Return the repr of a value for an error message.

    It is cut after 200 characters. A repr that raises is replaced by the name of the type.
    """
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
        Name of the extra, such as "lab".

    Returns
    -------
    str
        The command. It names the package if that came from a package index, and otherwise the
        folder of the sources, in which it has to be run: the package need not be on an index.
    """
    # Imported here: it takes 15 ms, which every first decision would wait for.
    from importlib.metadata import distributions

    # Sources that were built in place have metadata of their own, beside the installed metadata.
    urls = [one.read_text("direct_url.json") for one in distributions(name="keyhole")]
    from_index = bool(urls) and not any(urls)
    return f"pip install '{'keyhole' if from_index else '.'}[{extra}]'"
