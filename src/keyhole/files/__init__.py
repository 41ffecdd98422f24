"""Atomic replacement of files, and arrays in npz files.

Errors name the path that was given, never a temporary file. No pickle is ever opened.
"""

from keyhole.files.arrays import DAMAGE, read_arrays, write_arrays
from keyhole.files.paths import Path, checked_path, naming
from keyhole.files.streams import Source, Target, given_name, opened_source
from keyhole.files.whole import is_part, replacing, sync_folder

__all__ = [
    "DAMAGE",
    "Path",
    "Source",
    "Target",
    "checked_path",
    "given_name",
    "is_part",
    "naming",
    "opened_source",
    "read_arrays",
    "replacing",
    "sync_folder",
    "write_arrays",
]
