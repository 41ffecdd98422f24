"""The resident memory of this process, by what Linux says of it."""

from __future__ import annotations

import ctypes
import gc


def resident(field: str) -> float:
    """Megabytes of this process: VmRSS now, or VmHWM at most since `settle_memory`."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return float(line.split()[1]) / 1024.0


def settle_memory() -> float:
    """Megabytes now, from which on the most that is resident is counted.

    What was freed goes back to the system first: work that found room there would seem free.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident("VmRSS")
