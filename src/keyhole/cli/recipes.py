"""Recipes of simulations, from flags or from a TOML file."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from keyhole import checks
from keyhole.core import POLICIES, Fill, Learner, Policy
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.lab import datasets
from keyhole.lab.simulation import WorldRecipe
from keyhole.lab.worlds import RandomDatasetWorld, RandomLinearWorld, RandomMissingWorld, World

Made = TypeVar("Made")

# Flags of linear worlds, and the reason that a data set does not take them.
LINEAR_FLAGS = {
    "n_arms": ("--arms", "each class is an arm"),
    "context_dim": ("--context-dim", "its columns are the context"),
    "shared_parameter": ("--shared-parameter", "each class has a parameter of its own"),
    "shared_context": ("--shared-context", "a row is the context of all arms"),
}
SIZES = {"horizon": 2000, "replications": 20, "seed": 1}
LINEAR = {"n_arms": 5, "context_dim": 20, "dim": 10}


@dataclass(frozen=True)
class Recipe:
    """Settings of a world, learners, and sizes.

    Parameters
    ----------
    described : Mapping of str to Any
        Settings of the world.
    learners : dict of str to Learner or Policy
        Learners by the names of their policies.
    sizes : dict of str to int
        Horizon, number of replications and seed.
    """

    described: Mapping[str, Any]
    learners: dict[str, Learner | Policy]  # by the names of their policies
    sizes: dict[str, int]

    def world(self, seed: int, data_dir: Path | None) -> World | WorldRecipe:
        """Return the world, or the recipe from which each replication draws its own.

        Parameters
        ----------
        seed : int
            Seed of a fixed world.
        data_dir : Path or None
            Folder of the user's data files.
        """
        settings = dict(self.described)
        fixed, share = settings.pop("fixed", False), settings.pop("missing", None)
        drawn: RandomLinearWorld | RandomDatasetWorld
        if "data" in settings:
            data = datasets.load(
                settings.pop("data"), data_dir=data_dir, label=settings.pop("label", None)
            ).prepared(clip=settings.pop("clip", 0.005))
            settings.setdefault("dim", (data.features.shape[1] + 1) // 2)
            drawn = _made(RandomDatasetWorld, {"data": data, **settings}, "[world]")
        else:
            drawn = _made(RandomLinearWorld, {**LINEAR, **settings}, "[world]")
        if share is not None:
            hidden = RandomMissingWorld(drawn, share=share)
            return hidden.draw(seed) if fixed else hidden
        return drawn.draw(seed) if fixed else drawn


def from_flags(world: Mapping[str, Any], policies: list[str] | None) -> Recipe:
    """Return the recipe of a command line.

    Parameters
    ----------
    world : Mapping of str to Any
        Settings of the world by flag.
    policies : list of str or None
        Policies, such as "thompson:v=2"; by default "thompson" and "greedy".

    Raises
    ------
    InvalidValue
        If flags do not belong together, or a policy is not valid.
    """
    for flag in ("rewards", "label"):
        if flag in world and "data" not in world:
            raise InvalidValue(f"--{flag} needs --data, got {shown(world[flag])} without it")
    for name, (flag, reason) in LINEAR_FLAGS.items():
        if name in world and "data" in world:
            raise InvalidValue(f"{flag} cannot be used with --data: {reason}")
    if "fill" in world and "missing" not in world:
        raise InvalidValue(f"--fill needs --missing, got {shown(world['fill'])} without it")
    chosen = policies or ["thompson", "greedy"]
    world = dict(world)
    options = _options(world)
    return Recipe(world, _learners([_words(text) for text in chosen], options), dict(SIZES))


def policy_of(text: str) -> Policy:
    """Return a policy for use outside of a simulation, such as "thompson:v=2".

    Raises
    ------
    InvalidValue
        If there is no such policy, or no such setting of it.
    """
    table = _words(text)
    kind = table.pop("kind")
    if kind not in POLICIES:
        raise checks.unknown("policy", kind, POLICIES)
    return _made(POLICIES[kind], table, kind)


def flags_of(settings: Iterable[str]) -> str:
    """Return the flags of settings as text.

    Examples
    --------
    >>> flags_of(["n_arms", "context_dim"])
    '--arms, --context-dim'
    """
    return ", ".join(f"--{name.removeprefix('n_').replace('_', '-')}" for name in settings)


def _options(world: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of learners from the settings of a world, and return them."""
    options: dict[str, Any] = {
        name: world.pop(name) for name in ("intercept", "standardize") if name in world
    }
    if "fill" in world or "missing" in world:
        options["missing"] = world.pop("fill", "predict")
        if options["missing"] not in get_args(Fill):
            raise InvalidValue(
                f"fill must be one of {', '.join(get_args(Fill))}, got {shown(options['missing'])}"
            )
    return options


def _learners(
    policies: list[dict[str, Any]], options: dict[str, Any]
) -> dict[str, Learner | Policy]:
    """Return the policies by name, as learners if there are options."""
    return {
        str(policy): Learner(policy, **options) if options else policy
        for policy in _policies(policies)
    }


def from_file(path: Path) -> Recipe:
    """Return the recipe in a TOML file.

    Raises
    ------
    FileError
        If there is no file, it is not TOML, or it is not a recipe.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise FileError(f"{path} is not TOML: {reason}") from None
    known = {*SIZES, "world", "policies"}
    if unknown := set(given) - known:
        raise FileError(
            f"{path} must have only {', '.join(sorted(known))}, got {', '.join(sorted(unknown))}"
        )
    world = dict(given.get("world", {})) if isinstance(given.get("world", {}), dict) else None
    policies = given.get("policies", [{"kind": "thompson"}])
    if (
        world is None
        or not isinstance(policies, list)
        or not all(isinstance(one, dict) for one in policies)
    ):
        raise FileError(f"{path} must have a table [world] and tables [[policies]]")
    kind = world.pop("kind", "data" if "data" in world else "linear")
    if kind not in ("linear", "data") or (kind == "data") != ("data" in world):
        raise FileError(
            f"{path}: kind of [world] must be 'linear', or 'data' with data = a name or a CSV file"
        )
    sizes = {name: given.get(name, usual) for name, usual in SIZES.items()}
    options = _options(world)
    return Recipe(world, _learners([dict(one) for one in policies], options), sizes)


def _words(text: str) -> dict[str, Any]:
    """Return a policy such as "thompson:v=2,sharing=shared" as a table."""
    kind, _, rest = text.partition(":")
    table: dict[str, Any] = {"kind": kind}
    for part in filter(None, rest.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidValue(f"a policy must be written like thompson:v=2, got {text!r}")
        table[name.strip()] = _number(value.strip())
    return table


def _number(text: str) -> int | float | str:
    """Return an int, a float, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _policies(tables: list[dict[str, Any]]) -> list[Policy]:
    made = [_policy(table) for table in tables]
    for i, policy in enumerate(made):
        if policy in made[:i]:
            raise InvalidValue(f"policies must differ, got {policy!r} twice")
    return made


def _policy(table: dict[str, Any]) -> Policy:
    kind = table.pop("kind", None)
    if kind not in POLICIES:
        raise checks.unknown("policy", kind, POLICIES)
    # A simulation can take the noise scale from the world.
    names = {"thompson": "v", "greedy-first": "v", "weighted-thompson": "v", "oful": "r"}
    usual = {names[kind]: "oracle"} if kind in names else {}
    return _made(POLICIES[kind], {**usual, **table}, kind)


def _made(kind: type[Made], settings: dict[str, Any], what: str) -> Made:
    known = [name for name in inspect.signature(kind).parameters if name != "data"]
    if unknown := set(settings) - {*known, "data"}:
        raise InvalidValue(
            f"settings of {what} must be among {', '.join(known)}, got {', '.join(sorted(unknown))}"
        )
    return kind(**settings)
