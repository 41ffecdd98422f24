"""One thread of BLAS for each of ours, while any replication is at work in this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_users = 0
_limiter: Any = None


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
            _limiter = threadpool_limits(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limiter.restore_original_limits()
