"""Choice of the build of the kernels: the fastest present one that the processor can run."""

from __future__ import annotations

import os
import warnings

import numpy as np

from keyhole.core.kernels import rebuilding
from keyhole.errors import InvalidValue, KeyholeWarning

# NumPy's names of the instructions that a build needs; its newer versions name them by level. The
# fastest build is first.
NEEDS = {"avx2": [{"AVX2", "FMA3"}, {"X86_V3"}, {"X86_V4"}], "baseline": [set[str]()]}
# The kernels as Python, from the same files.
UNCOMPILED = "python"


def take() -> str:
    """Return the name of the build to use, which KEYHOLE_BUILD may set.

    Raises
    ------
    InvalidValue
        If KEYHOLE_BUILD does not name a build, or names one that is not present or that the
        processor cannot run.
    ImportError
        If this is a checkout and changed kernels do not compile.
    """
    wanted = os.environ.get("KEYHOLE_BUILD", "")
    if wanted not in ("", UNCOMPILED, *NEEDS):
        raise InvalidValue(f"KEYHOLE_BUILD must be {_listed([*NEEDS, UNCOMPILED])}, got {wanted!r}")
    if wanted == UNCOMPILED:
        return wanted
    rebuilding.rebuild_changed()
    here = usable()
    if wanted and wanted not in here:
        raise InvalidValue(
            f"KEYHOLE_BUILD is {wanted}, which was not compiled or cannot run on this processor; "
            f"here it must be {_listed([*here, UNCOMPILED])}"
        )
    if not here:
        warnings.warn(
            "Keyhole's kernels are not compiled and therefore slow: install a C "
            "compiler and then Keyhole again (pip install --force-reinstall --no-cache-dir), or "
            "install a wheel. KEYHOLE_BUILD=python silences this.",
            KeyholeWarning,
            stacklevel=3,
        )
        return UNCOMPILED
    return wanted or here[0]


def usable() -> list[str]:
    """Return the present builds that this processor can run, the fastest first."""
    found = np.show_config(mode="dicts").get("SIMD Extensions", {})
    able = {*found.get("baseline", ()), *found.get("found", ())}
    return [
        name
        for name, needs in NEEDS.items()
        if any(each <= able for each in needs)
        and any((rebuilding.COMPILED / name).glob(f"*{rebuilding.SUFFIX}"))
    ]


def _listed(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
