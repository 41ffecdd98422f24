"""The folder of a service: one process at a time works on it."""

from __future__ import annotations

import os
import sys

from keyhole.errors import FileUnusable
from keyhole.files import Path, checked_path, naming, sync_folder

if sys.platform != "win32":
    import fcntl

DATABASE = "keyhole.db"


def make_folder(path: str) -> None:
    """Make a folder that only its owner may enter, unless it exists, and sync those above it.

    A file that was synced is still lost if the entry of its folder was not.
    """
    folder, changed = os.path.abspath(path), []
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
        changed.append(folder)
    os.makedirs(path, mode=0o700, exist_ok=True)
    for folder in changed:
        sync_folder(folder)


def hand_to_owner(path: str) -> None:
    """Give a file that root made to the owner of its folder, so that the service can read it.

    A service runs as a user of its own, and its commands are often run by root. A link is not
    followed: its owner could have any file of root's handed over.
    """
    if sys.platform != "win32" and os.geteuid() == 0:
        above = os.stat(os.path.dirname(os.path.abspath(path)))
        os.chown(path, above.st_uid, above.st_gid, follow_symlinks=False)


def open_own(path: str) -> int:
    """Open a file of a folder, which is made if it does not exist; a link is refused."""
    return os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)


class Folder:
    """A folder that this process has to itself.

    Parameters
    ----------
    path : path-like
        The folder, which is made if it does not exist; only its owner may enter.

    Raises
    ------
    FileUnusable
        If another process works on it, or it cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(checked_path("folder", path))
        self._lock = -1
        try:
            with naming("write", self.path):
                make_folder(self.path)
                self._take()
                self._make_database()
        except BaseException:
            self.close()
            raise

    def _take(self) -> None:
        """Lock the folder, or raise if another process holds it."""
        if sys.platform == "win32":
            raise FileUnusable(
                f"{self.path} cannot be locked: the decision service runs on Linux and macOS, and "
                "without a lock two services could work on one folder"
            )
        self._lock = open_own(os.path.join(self.path, "lock"))
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileUnusable(
                f"{self.path} is in use by another process: one service works on a folder"
            ) from None

    def _make_database(self) -> None:
        """Make the file of the database, which only its owner may read: it has secrets.

        SQLite would follow the umask, and a backup may have been restored with other permissions.
        """
        database = open_own(self.database)
        try:
            if os.fstat(database).st_mode & 0o077:
                os.fchmod(database, 0o600)
        finally:
            os.close(database)

    @property
    def is_held(self) -> bool:
        """False if the folder or its lock was replaced: others can then lock the new one."""
        try:
            found, held = os.stat(os.path.join(self.path, "lock")), os.fstat(self._lock)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

    @property
    def database(self) -> str:
        """The path of the database."""
        return os.path.join(self.path, DATABASE)

    def close(self) -> None:
        """Leave the folder to others; a second call does nothing."""
        lock, self._lock = self._lock, -1
        if lock >= 0:  # the number may belong to another file by now
            os.close(lock)
