"""A simulation described in words: flags, or a TOML file."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
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

# Flags of linear worlds, and why a data set has no use for them.
LINEAR_FLAGS = {
    "n_arms": ("--arms", "each class is an arm"),
    "context_dim": ("--context-dim", "its columns are the context"),
    "shared_parameter": ("--shared-parameter", "each class has a parameter of its own"),
    "shared_context": ("--shared-context", "a row is the context of all arms"),
}
SIZES = {"horizon": 2000, "replications": 20, "seed": 1}
LINEAR = {"n_arms": 5, "context_dim": 20, "observation_dim": 10}


@dataclass(frozen=True)
class Recipe:
    """A world in words, policies, and sizes."""

    described: Mapping[str, Any]
    learners: dict[str, Learner | Policy]  # by the names of their policies
    sizes: dict[str, int]

    def world(self, seed: int, data_dir: Path | None) -> World | WorldRecipe:
        """The world, or the recipe from which each replication draws its own."""
        settings = dict(self.described)
        fixed, share = settings.pop("fixed", False), settings.pop("missing", None)
        drawn: RandomLinearWorld | RandomDatasetWorld
        if "data" in settings:
            data = datasets.load(
                settings.pop("data"), data_dir=data_dir, label=settings.pop("label", None)
            ).prepared(clip=settings.pop("clip", 0.005))
            settings.setdefault("observation_dim", (data.features.shape[1] + 1) // 2)
            drawn = _made(RandomDatasetWorld, {"data": data, **settings}, "[world]")
        else:
            drawn = _made(RandomLinearWorld, {**LINEAR, **settings}, "[world]")
        if share is not None:
            hidden = RandomMissingWorld(drawn, share=share)
            return hidden.draw(seed) if fixed else hidden
        return drawn.draw(seed) if fixed else drawn


def from_flags(world: Mapping[str, Any], policies: list[str] | None) -> Recipe:
    """The recipe of a command line."""
    for flag in ("rewards", "label"):
        if flag in world and "data" not in world:
            raise InvalidValue(f"--{flag} is for --data")
    for name, (flag, reason) in LINEAR_FLAGS.items():
        if name in world and "data" in world:
            raise InvalidValue(f"{flag} is not for --data: {reason}")
    if "fill" in world and "missing" not in world:
        raise InvalidValue("--fill is for --missing")
    chosen = policies or ["thompson", "greedy"]
    world = dict(world)
    options = _options(world)
    return Recipe(world, _learners([_words(text) for text in chosen], options), dict(SIZES))


def _options(world: dict[str, Any]) -> dict[str, Any]:
    """Take what learners are to do about observations out of a world's settings."""
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
    """Return the policies by name, or learners of them with these options."""
    return {
        str(policy): Learner(policy, **options) if options else policy
        for policy in _policies(policies)
    }


def from_file(path: Path) -> Recipe:
    """The recipe in a TOML file."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise FileError(f"{path} is not TOML: {reason}") from None
    known = {*SIZES, "world", "policies"}
    if unknown := set(given) - known:
        raise FileError(
            f"{path} has {', '.join(sorted(unknown))}; there is {', '.join(sorted(known))}"
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
    """thompson:v=2,sharing=shared as a table."""
    kind, _, rest = text.partition(":")
    table: dict[str, Any] = {"kind": kind}
    for part in filter(None, rest.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidValue(f"a policy is written like thompson:v=2, got {text!r}")
        table[name.strip()] = _number(value.strip())
    return table


def _number(text: str) -> int | float | str:
    """A whole number, a number, or the text itself."""
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
            raise InvalidValue(f"two policies are the same: {policy!r}; give each once")
    return made


def _policy(table: dict[str, Any]) -> Policy:
    kind = table.pop("kind", None)
    if kind not in POLICIES:
        raise checks.unknown("policy", kind, POLICIES)
    # In a simulation the world's own scale is the natural one.
    usual = {"thompson": {"v": "oracle"}, "greedy-first": {"v": "oracle"}, "oful": {"r": "oracle"}}
    return _made(POLICIES[kind], {**usual.get(kind, {}), **table}, kind)


def _made(kind: type[Made], settings: dict[str, Any], what: str) -> Made:
    known = [name for name in inspect.signature(kind).parameters if name != "data"]
    if unknown := set(settings) - {*known, "data"}:
        raise InvalidValue(
            f"{what} has no setting {', '.join(sorted(unknown))}; there is {', '.join(known)}"
        )
    return kind(**settings)
