"""Routes of loops: create or change one, show one or all, add and remove arms, record contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.errors import InvalidValue, shown
from keyhole.service.candidates import check_missing, check_named
from keyhole.service.http import responses
from keyhole.service.http.problems import Problem
from keyhole.service.http.request import Request
from keyhole.service.http.routing import Answered
from keyhole.service.http.turns import STEPS, Turns
from keyhole.service.loop import Loop
from keyhole.service.requests import Context
from keyhole.service.settings import LoopSettings

if TYPE_CHECKING:
    from keyhole.service.http.app import Application


class LoopView(msgspec.Struct, frozen=True, kw_only=True):
    """A loop.

    Parameters
    ----------
    name : str
        Its name.
    settings : LoopSettings
        Its settings.
    version : int
        The number of the last row of its log.
    arms : list of str
        Its arms.
    learned : dict of str to int
        How many rewards of each arm were learned.
    waiting : dict of str to int
        How many rewards of each arm will be learned once the units of numbers are known.
    ignored_fields : dict of str to int
        How often each field that the features do not have came, since the start of the service.
    """

    name: str
    settings: LoopSettings
    version: int
    arms: list[str]
    learned: dict[str, int]
    waiting: dict[str, int]
    ignored_fields: dict[str, int]


class LoopList(msgspec.Struct, frozen=True, kw_only=True):
    """The names of all loops."""

    loops: list[str]


class NewArms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arms to add, with their records if the loop has features of arms; or to remove."""

    add: list[str] | dict[str, dict[str, Any]] = []
    remove: list[str] = []


class Observations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Contexts without a decision."""

    contexts: list[Context]


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """The number of the last row after a change."""

    version: int


_settings = msgspec.json.Decoder(LoopSettings)
_arms = msgspec.json.Decoder(NewArms)
_observations = msgspec.json.Decoder(Observations)


def view(loop: Loop) -> LoopView:
    """Return a loop as clients see it."""
    return LoopView(
        name=loop.name,
        settings=loop.settings,
        version=loop.version,
        arms=[str(arm) for arm in loop.bandit.arms],
        learned={str(arm): count for arm, count in loop.bandit.counts.items()},
        waiting={str(arm): count for arm, count in loop.bandit.waiting.items()},
        ignored_fields=dict(loop.ignored),
    )


async def put_loop(app: Application, request: Request) -> Answered:
    """Create a loop, or change the settings of one: 201 or 200."""
    settings = _settings.decode(await request.body(app.limits.body))
    service, name = app.ready(), request.params[0]
    check_arms(app, settings.arms)
    app.limits.check_value("policy", settings.policy)
    app.limits.check_value("features", settings.features)
    is_new = name not in service.names
    loop = service.create(name, settings)
    return responses.json(view(loop), 201 if is_new else 200), loop.unit


async def get_loop(app: Application, request: Request) -> Answered:
    """Show a loop."""
    loop = app.ready().loop(request.params[0])
    return responses.json(view(loop)), loop.unit


async def list_loops(app: Application, _request: Request) -> Answered:
    """List the loops. A key that is for one loop may not."""
    service = app.ready()
    return responses.json(LoopList(loops=service.names)), service.writer.submitted


async def change_arms(app: Application, request: Request) -> Answered:
    """Add or remove arms."""
    given = _arms.decode(await request.body(app.limits.body))
    check_arms(app, given.add)
    check_arms(app, given.remove)
    loop = app.ready().loop(request.params[0])
    if bool(given.add) == bool(given.remove):
        got = "both: send two requests" if given.add else "neither"
        raise InvalidValue(f"exactly one of add and remove must list arms, got {got}")
    if given.add:
        loop.add_arms(given.add)
    if given.remove:
        loop.remove_arms(given.remove)
    return responses.json(view(loop)), loop.unit


def check_arms(app: Application, arms: list[str] | dict[str, dict[str, Any]]) -> None:
    """Raise `InvalidValue` if there are too many arms, or a record is too large.

    Parameters
    ----------
    app : Application
        The application, with its limits.
    arms : list of str, or dict of str to dict
        The arms.
    """
    if len(arms) > 100 * app.limits.actions:
        raise InvalidValue(f"arms must be at most {100 * app.limits.actions}, got {len(arms)}")
    if isinstance(arms, dict):
        for name, record in arms.items():
            app.limits.check_record(f"arms: {shown(name)}", record)


async def observe(app: Application, request: Request) -> Answered:
    """Record contexts without a decision, in turns."""
    given = _observations.decode(await request.body(app.limits.batch)).contexts
    if not given:
        raise InvalidValue("contexts must have at least one, got none")
    if len(given) > app.limits.batch_lines:
        raise Problem(
            413,
            f"contexts must be at most {app.limits.batch_lines}, got {len(given)}: send them in "
            "parts",
        )
    turns, name = Turns(app), request.params[0]
    loop = app.ready().loop(name)
    for context in given:  # all, before the first is observed
        await turns.begin_step()
        check_observation(app, loop, context)
    for first in range(0, len(given), STEPS):
        await turns.end()
        loop = app.ready().loop(name)  # again in each turn: the disk may have failed
        turns.check()
        try:
            loop.observe(given[first : first + STEPS])
        except InvalidValue as reason:
            raise InvalidValue(f"{reason}{_observed(first)}") from None
        turns.add(loop.unit)
    return responses.json(Changed(version=loop.version)), turns.unit


def check_observation(app: Application, loop: Loop, context: Context) -> None:
    """Raise `InvalidValue` if a context is too large, or is not of the kind that a loop takes.

    Parameters
    ----------
    app : Application
        The application, with its limits.
    loop : Loop
        The loop.
    context : dict or list
        The context.
    """
    app.limits.check_record("contexts", context)
    check_missing(loop.settings, context)
    dim = loop.settings.dim
    if dim is None:
        check_named(loop.bandit, context)
    elif not isinstance(context, list) or len(context) != dim:
        raise InvalidValue(f"contexts must be lists of {dim} numbers, got {shown(context)}")


def _observed(count: int) -> str:
    """Return the note on contexts observed before a refusal."""
    return f"; the first {count} contexts were observed, and none after them" if count else ""
