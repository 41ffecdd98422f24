"""`audit`: every claim of a scope, each with its control, at a common error of the family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from keyhole.errors import InvalidValue
from keyhole.lab.audit.claims import CLAIMS, SHARED_CLAIMS, Claim
from keyhole.lab.audit.findings import Finding, Power
from keyhole.lab.audit.scope import Scope
from keyhole.lab.audit.validity import Assumption, assumptions
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import status_of

# The probability that any claim of an audit is contradicted though all are true, at most: the level
# of each test is this over the number of tests (Bonferroni), which needs no independence.
FAMILY_ERROR = 0.01


def audit(scope: Scope, *, with_controls: bool = True) -> Iterator[Finding]:
    """Yield the findings on every claim, as they are made.

    The claims about Algorithm 1 come first, then those about Algorithm 2, with the parameter of the
    first arm for all arms. Each has its control, the same test where the claim is broken.

    All tests of an audit together contradict a true claim with probability at most 1%.

    Parameters
    ----------
    scope : Scope
        The world, the sizes and the seed of the audit.
    with_controls : bool, default True
        Run the controls.

    Yields
    ------
    Finding
        The finding on one claim.

    Raises
    ------
    InvalidValue
        If `scope` is not a Scope.
    """
    if not isinstance(scope, Scope):
        raise InvalidValue(f"audit takes a Scope, got {type(scope).__name__}")
    alike = scope if scope.shared else _alike(scope)
    own = [] if scope.shared else [(claim, scope) for claim in CLAIMS]
    tests = [*own, *((claim, alike) for claim in SHARED_CLAIMS)]
    applied = sum(not _missing(claim, where) for claim, where in tests)
    level = FAMILY_ERROR / max(applied, 1)
    broken: dict[tuple[str, bool], Scope] = {}
    for claim, where in tests:
        found = _found(claim, where, level)
        if with_controls and not found.needs and not found.early:
            key = (claim.control.name, where.shared)
            if key not in broken:
                broken[key] = claim.control.broken(where)
            made = claim.measure(broken[key])
            power = Power(claim.control.name, made.p, level, made.slack, made.evidence)
            found = replace(found, control=power)
        yield found


def _alike(scope: Scope) -> Scope:
    """Return the scope of Algorithm 2, all arms with the parameter of the first."""
    policy = None if scope.policy is None else replace(scope.policy, sharing="shared")
    assumed = None if scope.assumed is None else _with_one_parameter(scope.assumed)
    world = _with_one_parameter(scope.world)
    return replace(scope, world=world, assumed=assumed, policy=policy, shared=True)


def _with_one_parameter(world: LinearWorld) -> LinearWorld:
    # Arms of one parameter that shared a context, too, would all tie.
    first = np.tile(world.coefficients[:1], (world.n_arms, 1))
    return replace(world, coefficients=first, shared_context=False)


def _missing(claim: Claim, scope: Scope) -> tuple[Assumption, ...]:
    """Return the assumptions without which a claim has no constants, or is refused.

    Outside of the assumptions, on purpose, constants are all that a claim needs.
    """
    kept = claim.needs if scope.is_inside else tuple(n for n in claim.needs if n != "eq:reward")
    return tuple(a for a in assumptions(scope.stated) if a.label in kept and not a.met)


def _found(claim: Claim, scope: Scope, level: float) -> Finding:
    """Return the finding on a claim, without its control."""
    name = f"shared: {claim.name}" if scope.shared else claim.name
    status = (
        status_of(claim.bound, shared_context=scope.world.shared_context) if claim.bound else None
    )
    if missing := _missing(claim, scope):
        needs = tuple(str(one) for one in missing)
        return Finding(
            name, claim.label, "", claim.kind, 1.0, level, False, np.nan, "", needs=needs,
            status=status.word if status else "", gaps=status.gaps if status else (),
        )  # fmt: skip
    made = claim.measure(scope)
    false = claim.false(scope) if made.p <= level and scope.is_inside else ""
    return Finding(
        name=name,
        label=claim.label,
        claim=claim.says(scope),
        kind=claim.kind,
        p=made.p,
        level=level,
        supported=made.supported,
        slack=made.slack,
        evidence=f"{made.evidence}; {false}" if false else made.evidence,
        begins=claim.begins(scope),
        early=made.early,
        outside=not scope.is_inside,
        status=status.word if status else "proved",
        false=false,
        gaps=status.gaps if status else (),
    )
