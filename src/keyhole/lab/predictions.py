"""The regret that theory predicts for the policies of a simulation."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr

from keyhole.core import POLICIES, Policy
from keyhole.errors import InvalidValue, shown
from keyhole.lab.worlds import World, from_text
from keyhole.theory import Asymptote, asymptote


def predicted(runs: xr.Dataset, world: World | None = None) -> dict[str, Asymptote]:
    """Return the asymptote of each policy of a simulation for which there is one with a curve.

    Parameters
    ----------
    runs : Dataset
        The result of `simulate` in one world.
    world : World, optional
        That world. By default the one that the result carries.

    Returns
    -------
    dict of str to Asymptote
        The asymptotes by the names of policies, up to the last round of the runs.

    Raises
    ------
    InvalidValue
        If the runs carry no world, another world is given, or no policy has an asymptote; the
        message has the reason.
    """
    world = _world(runs, world)
    horizon = int(runs.time[-1])
    found, reasons = {}, {}
    for name, record in json.loads(runs.attrs["policies"]).items():
        try:
            one = asymptote(world, _policy(record), horizon=horizon)
        except InvalidValue as reason:
            reasons[name] = str(reason)
            continue
        if one.refusal:
            reasons[name] = one.refusal
        else:
            found[name] = one
    if not found:
        said = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise InvalidValue(f"no policy of these runs has an asymptote: {said}")
    return found


def _world(runs: xr.Dataset, world: World | None) -> World:
    """Return the world of a result, checked against what the result says of it."""
    for name in ("world", "policies"):
        if name not in runs.attrs:
            raise InvalidValue(f"runs must have the attribute {name!r} that simulate gives them")
    if world is None:
        if "world_settings" not in runs.attrs:
            raise InvalidValue(
                "these runs carry no world: an asymptote is that of one LinearWorld. If they are "
                "from one that is too large to be carried, give it as asymptote=world"
            )
        return from_text(runs.attrs["world_settings"])
    if not isinstance(world, World):
        raise InvalidValue(f"asymptote must be True, False or a world, got {shown(world)}")
    if json.loads(json.dumps(world.describe())) != json.loads(runs.attrs["world"]):
        raise InvalidValue(f"these runs are from another world than {shown(world)}")
    return world


def _policy(record: dict[str, Any]) -> Policy:
    """Return the policy of a learner's record, or raise if it is not a plain learner of Keyhole."""
    kind = next((kind for kind in POLICIES.values() if kind.__name__ == record.get("name")), None)
    if kind is None or "options" in record:
        raise InvalidValue("the asymptote is derived for plain learners with a policy of Keyhole")
    policy: Policy = kind(**record["settings"])
    # A user-defined class may have the name of one of Keyhole and another rule.
    if list(policy.resolve(1.0).plain_rule()) != list(record["rule"]):
        raise InvalidValue("the asymptote is derived for policies of Keyhole")
    return policy
