"""Keys of clients: a file of their digests beside the database, `keys.json`.

It is a file of its own, and not a table: a service has the database to itself, and keys must be
added and revoked while it runs. Everyone who may write to the folder may add keys; no key is needed
to make the first. A running service reads the file again when it has changed.

A key is 256 random bits. Its digest is SHA-256: a slow hash protects passwords, which can be
guessed, and 256 bits cannot be guessed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal, get_args

import msgspec

from keyhole.errors import FileError, InvalidValue, shown
from keyhole.files import Path, checked_path, naming, replacing
from keyhole.service.folder import hand_to_owner, make_folder, open_own
from keyhole.service.requests import check_name

if sys.platform != "win32":
    import fcntl

Role = Literal["decide", "reward", "read", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
FILE = "keys.json"
# Makes a key recognisable, in logs and to scanners of repositories.
PREFIX = "kh_"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without its secret.

    Parameters
    ----------
    name : str
        Its name, by which it is revoked.
    digest : str
        SHA-256 of the secret, in hexadecimal digits.
    roles : list of str
        Its roles: "decide", "reward", "read"; "admin" may do everything.
    loop : str, optional
        The only loop that it is for; all by default.
    made : float
        When it was made, in seconds since 1970.
    expires : float, optional
        When it ends.
    """

    name: str
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    roles: list[Role]
    loop: str | None = None
    made: float = 0.0
    expires: float | None = None

    def allows(self, role: Role, loop: str | None) -> bool:
        """Tell whether the key has a role for a loop.

        Parameters
        ----------
        role : str
            The role that is needed.
        loop : str or None
            The loop; None for all of them.
        """
        if self.loop is not None and loop != self.loop:
            return False
        return role in self.roles or "admin" in self.roles

    def is_valid(self, now: float) -> bool:
        """Tell whether it has not expired."""
        return self.expires is None or now < self.expires


class KeyFile:
    """The keys of a folder.

    Parameters
    ----------
    folder : path-like
        The folder of a service, which is made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(checked_path("folder", folder))
        self.path = os.path.join(self._folder, FILE)
        self._stamp: tuple[int, int, int] | None = None
        self._keys: dict[bytes, Key] = {}
        self.exists = False

    # -- reading ----------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            # Deleting the file does not open the service: keys stay necessary.
            self._keys, self._stamp = {}, None  # and the same file may come back
            return
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        self.exists = True
        if stamp != self._stamp:
            self._keys = {bytes.fromhex(key.digest): key for key in self.read()}
            self._stamp = stamp

    def read(self) -> list[Key]:
        """Return all keys of the file."""
        with naming("read", self.path):
            try:
                with open(self.path, "rb") as file:
                    return msgspec.json.decode(file.read(), type=list[Key])
            except FileNotFoundError:
                return []
            except msgspec.MsgspecError as reason:
                raise FileError(f"{self.path} is not a list of keys: {reason}") from None

    def find(self, secret: bytes) -> Key | None:
        """Return the key of a secret that a client sent, if it is valid."""
        # Looked up by digest, which a client cannot choose: timing reveals nothing.
        key = self._keys.get(hashlib.sha256(secret).digest())
        return key if key is not None and key.is_valid(time.time()) else None

    def has_valid(self) -> bool:
        """Tell whether some key can be used."""
        self.refresh()
        return any(key.is_valid(time.time()) for key in self._keys.values())

    # -- writing ----------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        roles: list[Role],
        *,
        loop: str | None = None,
        expires: float | None = None,
    ) -> str:
        """Make a key, and return its secret, which is not kept.

        Parameters
        ----------
        name : str
            Its name.
        roles : list of str
            Its roles.
        loop : str, optional
            The only loop that it is for.
        expires : float, optional
            When it ends, in seconds since 1970.
        """
        for what, text in (("name", name), ("loop", loop)):
            if text is not None:
                check_name(what, text)
        if not roles or not set(roles) <= set(ROLES):
            raise InvalidValue(f"roles must be among {', '.join(ROLES)}, got {shown(roles)}")
        secret = PREFIX + secrets.token_urlsafe(32)
        digest = hashlib.sha256(secret.encode()).hexdigest()
        with naming("write", self.path):
            make_folder(self._folder)
        with self._changing() as keys:
            if any(key.name == name for key in keys):
                raise InvalidValue(f"there is a key {name!r} already: revoke it first")
            key = Key(
                name=name,
                digest=digest,
                roles=[role for role in ROLES if role in roles],
                loop=loop,
                made=time.time(),
                expires=expires,
            )
            keys.append(key)
        return secret

    def revoke(self, name: str) -> None:
        """Delete a key; a running service refuses it within a second."""
        if not os.path.isdir(self._folder):
            raise InvalidValue(f"there is no folder {self._folder}, and no key {shown(name)}")
        with self._changing() as keys:
            kept = [key for key in keys if key.name != name]
            if len(kept) == len(keys):
                known = ", ".join(key.name for key in keys) or "none"
                raise InvalidValue(f"there is no key {shown(name)}; keys: {known}")
            keys[:] = kept

    @contextmanager
    def _changing(self) -> Iterator[list[Key]]:
        """Hand out the keys to be changed, and write them whole; one process at a time."""
        with _locked(os.path.join(self._folder, "keys.lock")):
            keys = self.read()
            yield keys
            with replacing(self.path) as file:
                file.write(msgspec.json.format(msgspec.json.encode(keys)) + b"\n")
            os.chmod(self.path, 0o600)
            hand_to_owner(self.path)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold the lock of a file; others wait."""
    with naming("write", path):
        handle = open_own(path)
        hand_to_owner(path)
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
