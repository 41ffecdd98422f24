"""`About`: the entry of a route in the OpenAPI document."""

from __future__ import annotations

from typing import Any, NamedTuple


class About(NamedTuple):
    """The entry of a route in the OpenAPI document.

    Attributes
    ----------
    summary : str
        A sentence.
    answers : dict of int to type
        The type of the answer for each status of success; None if it has no schema. With `lines`,
        the types of a line.
    body : type, optional
        The type of the body; with `lines`, of a line.
    query : dict, optional
        The schema of each parameter of the query.
    problems : tuple of int, default ()
        Statuses of errors beside those that every route has.
    lines : bool, default False
        Whether body and answer are newline-delimited JSON.
    content : str, default "application/json"
        The type of the answer's content.
    contents : tuple of str, default ()
        Further types of it, of which a request chooses one by `Accept`.
    takes : str, default "application/json"
        The type of the body's content.
    error : type, optional
        The type of an error; `ProblemDetails` by default.
    """

    summary: str
    answers: dict[int, Any]
    body: Any = None
    query: dict[str, Any] = {}  # noqa: RUF012 - it is not changed
    problems: tuple[int, ...] = ()
    lines: bool = False
    content: str = "application/json"
    contents: tuple[str, ...] = ()
    takes: str = "application/json"
    error: Any = None
