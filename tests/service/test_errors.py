"""Errors of the disk, at every call: an answer stands, and the service comes back."""

from pathlib import Path

from tests.service.filling import fill
from tests.service.injecting import inject_all
from tests.service.killing import FORKS


def test_an_error_at_any_call() -> None:
    """Every call of four kinds of error is `make torture`; here some of each."""
    failed = inject_all(step=15)
    assert {"open", "read", "write", "sync", "lock", "unlock", "size", "truncate"} <= set(failed)


def test_a_full_disk(tmp_path: Path) -> None:
    """A refused request leaves nothing, and is accepted when there is space."""
    reader, writer = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=fill, args=(str(tmp_path), 400_000, writer))
    process.start()
    found = reader.recv()
    process.join()
    assert not isinstance(found, str), found
    answered, refused = found
    assert answered > 50
    assert refused >= 5
