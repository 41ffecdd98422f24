"""File system layers of SQLite that fail: a disk that loses what was not synced, and one in error.

`Disk` writes to real files, so that the service works as ever, and keeps for each file what a power
loss would leave for sure (`durable`) and the changes since its last sync. `crash` makes of them the
files of a folder after a power loss: of each change that was not synced, some sectors are there and
some are not. `Faulty` raises at the k-th call.
"""

import os
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class PowerIsOff(apsw.IOError):
    """A call after the crash."""


@dataclass
class Image:
    """A file on a disk: what is there for sure, and what was written since."""

    durable: bytearray = field(default_factory=bytearray)
    # Offset and data of a write; the size and None of a truncation.
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    is_new: bool = True

    def sync(self) -> None:
        for offset, data in self.pending:
            self._apply(offset, data)
        self.pending = []

    def _apply(self, offset: int, data: bytes | None) -> None:
        content = self.durable
        if data is None:
            del content[offset:]
        else:
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data

    def crash(self, rng: random.Random) -> bytes:
        """Return the file after a power loss."""
        luck = rng.random()  # sometimes all or nothing is there, and mostly a part
        for offset, data in self.pending:
            if data is None:
                if rng.random() < luck:
                    self._apply(offset, None)
                continue
            begin = 0
            while begin < len(data):
                # Sectors of the disk, and not of the write, are whole.
                end = min(len(data), begin + SECTOR - (offset + begin) % SECTOR)
                if rng.random() < luck:
                    self._apply(offset + begin, data[begin:end])
                begin = end
        return bytes(self.durable)


class Disk(apsw.VFS):
    """A file system whose power goes off at a call.

    Parameters
    ----------
    name : str
        What SQLite calls it.
    seed : int
        What is lost follows from it.
    lasts : int
        The number of calls that change a file, after which the power is off.
    """

    def __init__(self, name: str, seed: int, lasts: int) -> None:
        self.name, self.random, self.left = name, random.Random(seed), lasts
        self.images: dict[str, Image] = {}
        # Files whose folder was not synced since they were deleted: they may still be there.
        self.deleted: dict[str, Image] = {}
        self.lock = threading.Lock()
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        with self.lock:
            self.images.setdefault(path, Image())
        return DiskFile(self, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.lock:
            self.spend()
            self.deleted[filename] = self.images.pop(filename, Image())
            if syncdir:
                self.deleted.clear()
        super().xDelete(filename, syncdir)

    def spend(self) -> None:
        """Count a change; raise if the power is off."""
        self.left -= 1
        if self.left < 0:
            raise PowerIsOff("the power is off")

    def crash(self, folder: Path) -> None:
        """Write the files of after the crash into another folder; the power is off from now on."""
        with self.lock:
            self.left = -1
            folder.mkdir()
            undone = {path: one for path, one in self.deleted.items() if self.random.random() < 0.5}
            for path, image in {**undone, **self.images}.items():
                (folder / os.path.basename(path)).write_bytes(image.crash(self.random))


class DiskFile(apsw.VFSFile):
    """A file of a `Disk`."""

    def __init__(self, disk: Disk, path: str, name: Any, flags: list[int]) -> None:
        self.disk, self.path = disk, path
        super().__init__("", name, flags)

    def _note(self, offset: int, data: bytes | None) -> None:
        with self.disk.lock:
            self.disk.spend()
            self.disk.images.setdefault(self.path, Image()).pending.append((offset, data))

    def xWrite(self, data: Any, offset: int) -> None:
        self._note(offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._note(newsize, None)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: ARG002 - SQLite calls it so
        with self.disk.lock:
            self.disk.spend()
            image = self.disk.images.setdefault(self.path, Image())
            image.sync()
            if image.is_new and not self.path.endswith(".db"):
                # With a new journal SQLite syncs its folder, and so what was deleted there.
                self.disk.deleted.clear()
            image.is_new = False
        # The real file need not be synced: a power loss of this machine is not what is tested.


class Faulty(apsw.VFS):
    """A file system with an error at the k-th call of any kind that apsw hands to Python.

    Those of shared memory, which the write-ahead log is indexed by, are not among them.

    Parameters
    ----------
    name : str
        What SQLite calls it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.fails_at: int | None = None
        self.lasts = False  # whether all later calls fail too
        self.error: type[apsw.Error] = apsw.IOError
        self.failed: list[str] = []
        super().__init__(name, "")

    def set(self, fails_at: int, *, lasts: bool, error: type[apsw.Error] = apsw.IOError) -> None:
        """Have the k-th call from now fail."""
        self.calls, self.fails_at, self.lasts, self.error = 0, fails_at, lasts, error
        self.failed = []

    def heal(self) -> None:
        """Have no call fail any more."""
        self.fails_at = None

    def count(self, what: str) -> None:
        """Count a call, and raise if it is one that fails."""
        self.calls += 1
        at = self.fails_at
        if at is not None and (self.calls == at or (self.lasts and self.calls > at)):
            self.failed.append(what)
            raise self.error(f"injected into {what}")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        self.count("open")
        return FaultyFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.count("delete")
        super().xDelete(filename, syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self.count("access")
        return super().xAccess(pathname, flags)


class FaultyFile(apsw.VFSFile):
    """A file of a `Faulty`."""

    def __init__(self, disk: Faulty, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self.disk.count("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        self.disk.count("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: ARG002 - SQLite calls it so
        self.disk.count("sync")  # and no more: the power stays on

    def xTruncate(self, newsize: int) -> None:
        self.disk.count("truncate")
        super().xTruncate(newsize)

    def xFileSize(self) -> int:
        self.disk.count("size")
        return super().xFileSize()

    def xLock(self, level: int) -> None:
        self.disk.count("lock")
        super().xLock(level)

    def xUnlock(self, level: int) -> None:
        self.disk.count("unlock")
        super().xUnlock(level)
