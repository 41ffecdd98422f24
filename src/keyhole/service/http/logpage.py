"""The route of the log: its rows in order, a page at a time, as JSON lines or as Arrow.

A page ends at `limit` rows, or earlier where it grows large. The next one begins `after` the number
of its last row; an empty page is the end, so far.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from keyhole.errors import InvalidValue, MissingExtra, install_line, shown
from keyhole.service.http.problems import Problem
from keyhole.service.http.request import Request
from keyhole.service.http.responses import NDJSON, Response
from keyhole.service.http.routing import Answered

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

ARROW = "application/vnd.apache.arrow.stream"
PAGE_ROWS = 1_000
PAGE_BYTES = 8 << 20


async def log(app: Application, request: Request) -> Answered:
    """Return rows of the log of a loop."""
    query = request.query("after", "limit")
    after = integer(query, "after", 0, 2**62)
    limit = integer(query, "limit", PAGE_ROWS, app.limits.log_rows, min_value=1)
    loop = app.ready().loop(request.params[0])
    unit = loop.unit
    await app.commits.wait(unit)  # the database has no row before
    archived = app.ready().archived(loop.name)
    if after < archived:
        raise Problem(
            410,
            f"rows up to {archived} were archived by `keyhole compact`: give after={archived} or "
            f"more, got {after}. `keyhole export` writes the whole log",
        )
    found: list[tuple[int, str, bytes]] = []
    size = 0
    for row in app.ready().store.rows(loop.number, after, limit):
        found.append(row)
        size += len(row[2])
        if size > PAGE_BYTES:
            break
    if ARROW in request.header(b"accept"):
        return Response(200, as_arrow(found), ((b"content-type", ARROW.encode()),)), unit
    return Response(200, b"".join(body for _, _, body in found), (NDJSON,)), unit


def as_arrow(found: list[tuple[int, str, bytes]]) -> bytes:
    """Return rows as a stream of Arrow: number, kind, and the row as a text of JSON."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra(f"Arrow needs pyarrow: {install_line('logs')}") from None
    schema = pa.schema([("seq", pa.int64()), ("kind", pa.string()), ("row", pa.string())])
    columns = [
        [seq for seq, _, _ in found],
        [kind for _, kind, _ in found],
        [body.decode().rstrip("\n") for _, _, body in found],
    ]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(pa.table(columns, schema=schema))
    return sink.getvalue()


def integer(
    query: dict[str, str], name: str, default: int, max_value: int, *, min_value: int = 0
) -> int:
    """Return a whole number of a query.

    Parameters
    ----------
    query : dict
        The query.
    name : str
        The name of the parameter.
    default : int
        Its value if the query does not have it.
    max_value, min_value : int
        Its bounds.
    """
    text = query.get(name, str(default))
    if not (
        text.isascii() and text.isdigit() and len(text) < 20 and min_value <= int(text) <= max_value
    ):
        raise InvalidValue(
            f"{name} must be a whole number from {min_value} to {max_value}, got {shown(text)}"
        )
    return int(text)
