"""pyarrow, which reads and writes Parquet, imported when it is first used."""

from __future__ import annotations

from typing import Any

from keyhole.errors import MissingExtra, install_line


def arrow() -> Any:
    """Return pyarrow, with its Parquet part; raise `MissingExtra` if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"Parquet needs pyarrow: {install_line('logs')}") from None
    return pa
