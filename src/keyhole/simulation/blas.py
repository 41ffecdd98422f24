"""One thread of BLAS for each of ours, while any replication is at work in this process."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
_limiter: Any = None


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:  # noqa: ARG001 - part of the key
    """The BLAS libraries in this process, the same as long as no module was imported.

    Finding them takes as long as a short simulation.
    """
    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread until the last of those who asked for it is done.

    Products of small matrices gain nothing from more, and with one they round alike whatever the
    number of cores. The limit is the whole process's, hence the count of its users.
    """
    global _users, _limiter
    with _lock:
        _users += 1
        if _users == 1:
            _limiter = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limiter.restore_original_limits()
