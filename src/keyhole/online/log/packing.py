"""A bandit's file as text, for a row of a log."""

from __future__ import annotations

import base64
import zlib

from keyhole.errors import FileError

# A bandit of 100,000 arms and dim 20 takes 400 MB.
LARGEST = 1 << 32


def packed(content: bytes) -> str:
    """Return bytes, compressed, in base 64."""
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def unpacked(text: str) -> bytes:
    """Return the bytes of a packed text, or raise `FileError`."""
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(text, validate=True), LARGEST)
    except (ValueError, zlib.error) as reason:
        raise FileError(f"the saved bandit in the log is damaged: {reason}") from None
    if not stream.eof:
        raise FileError("the saved bandit in the log is not complete, or too large")
    return content
