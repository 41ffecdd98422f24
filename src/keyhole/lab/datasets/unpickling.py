"""A reader of pickled data frames that does not run the code that a pickle names."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pandas as pd

from keyhole.errors import FileError
from keyhole.files import DAMAGE

# All classes and functions in a pickled data frame of numbers and text. NumPy's module has had two
# names.
NAMES = frozenset(
    {
        ("builtins", "slice"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("pandas.core.frame", "DataFrame"),
        ("pandas.core.indexes.base", "Index"),
        ("pandas.core.indexes.base", "_new_Index"),
        ("pandas.core.indexes.range", "RangeIndex"),
        ("pandas.core.internals.managers", "BlockManager"),
    }
)


def read_pickled_frame(content: bytes) -> pd.DataFrame:
    """Read a pickled data frame, and refuse a pickle that names any other class or function.

    Raises
    ------
    FileError
        If the pickle is damaged, names a class or function that is not allowed, or does not contain
        a data frame.
    """
    try:
        frame = _Unpickler(io.BytesIO(content)).load()
    # A damaged pickle can raise nearly any exception while it is loaded.
    except (*DAMAGE, pickle.UnpicklingError, AttributeError, TypeError, IndexError) as reason:
        raise FileError(f"not a pickled data frame: {reason}") from None
    if not isinstance(frame, pd.DataFrame):
        raise FileError(f"not a pickled data frame but {type(frame).__name__}")
    return frame


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the named class or function, if it is allowed.

        Parameters
        ----------
        module : str
            The module of the class or function.
        name : str
            Its name in the module.
        """
        if (module, name) not in NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not allowed")
        return super().find_class(module, name)
