"""`Rounds`, a block of rounds, and `World`, the source of such blocks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from keyhole import checks
from keyhole.core import Floats, Ints, Seed, Sensor, SensorName, Streams, streams
from keyhole.lab.worlds.describing import digest, identity


@dataclass(frozen=True)
class Rounds:
    """The data of T rounds, for all arms.

    Parameters
    ----------
    observations : ndarray of shape (T, n_arms, dim) or (T, 1, dim)
        The observations y. The second axis has length 1 if the arms share one observation.
    rewards : ndarray of shape (T, n_arms)
        The reward of each arm if it is chosen.
    values : ndarray of shape (T, n_arms)
        y'eta, the reward that the best observer expects.
    latent : ndarray of shape (T, n_arms)
        x'mu, the expected reward given x; NaN if unknown.
    labels : ndarray of shape (T,), optional
        The arm that is the right answer, if there is one.
    sensors : ndarray of shape (T,), optional
        The place of each round's sensor among `World.sensors`, if there are several.
    """

    observations: Floats  # (T, n_arms, dim) or (T, 1, dim)
    rewards: Floats  # (T, n_arms)
    values: Floats  # (T, n_arms)
    latent: Floats  # (T, n_arms)
    labels: Ints | None = None  # (T,)
    sensors: Ints | None = None  # (T,)

    def __len__(self) -> int:
        return len(self.rewards)


class Member:
    """A required member of a world: a class attribute, a property, or set in `__init__`.

    Unlike a property, it can be replaced by an attribute of the same name.

    Parameters
    ----------
    name : str
        The name of the member.
    doc : str or None
        Its docstring.
    """

    def __init__(self, name: str, doc: str | None) -> None:
        self.name, self.__doc__ = name, doc

    def __get__(self, world: object, kind: type | None = None) -> Any:
        if world is None:
            return self
        raise AttributeError(
            f"{type(world).__name__} has no {self.name}: "
            "set it in the class, in __init__ or as a property"
        )


# The required members of a world besides `rounds`.
MEMBERS = ("n_arms", "dim", "eta", "noise_scale")


class World(ABC):
    """A source of rounds. A user-defined world is a subclass with these five members.

    All but `rounds` may be attributes of the class, properties, or attributes set in `__init__`. A
    policy sees `observations` and the reward of the arm that it pulls; the rest of a block is for
    its evaluation. Numbers are finite and at most 1e50.
    """

    # Whether all arms have one observation, (n, 1, dim): blocks of more rounds then fit the cache.
    shared_context: bool = False
    # The sensors by name, if rounds say which one there is. A learner whose `choose` and `learn`
    # take `sensor` is handed its name.
    sensors: Mapping[SensorName, Sensor] = MappingProxyType({})

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        raise NotImplementedError

    @property
    def dim(self) -> int:
        """The length of an observation."""
        raise NotImplementedError

    @property
    def eta(self) -> Floats:
        """The parameter of the best linear prediction of each arm's reward, (n_arms, dim)."""
        raise NotImplementedError

    @property
    def noise_scale(self) -> float:
        """The standard deviation of a reward about y'eta, the largest over arms.

        A policy with v="oracle" uses it. It must be finite; the theory's R need not be.
        """
        raise NotImplementedError

    def start(self, source: Streams) -> Any:
        """Return the initial state for `rounds`: by default the random streams, and nothing else.

        A world whose rounds depend on earlier rounds, such as one with autocorrelated contexts,
        returns a state of its own, which `rounds` changes.

        Parameters
        ----------
        source : Streams
            Random streams by name.
        """
        return source

    @abstractmethod
    def rounds(self, state: Any, n: int) -> Rounds:
        """Return the next n rounds.

        Parameters
        ----------
        state : Streams or object
            The state that `start` returned.
        n : int
            The number of rounds.
        """

    def sample(self, n: int, seed: Seed | Streams = None) -> Rounds:
        """Return the first n rounds of a seed.

        Parameters
        ----------
        n : int
            The number of rounds.
        seed : int, numpy.random.SeedSequence or Streams, optional
            The source of random numbers.
        """
        return self.rounds(self.start(streams(seed)), checks.integer("n", n, min_value=0))

    def describe(self) -> dict[str, Any]:
        """Return the properties that identify the world, for the attributes of a result."""
        described = {
            "kind": type(self).__name__,
            "n_arms": self.n_arms,
            "dim": self.dim,
            "noise_scale": float(self.noise_scale),
            "eta_sha256": digest(self.eta),
        }
        if type(self).__module__.startswith("keyhole."):
            return described
        return {**described, "identity": identity(self)}


# Written as properties for readers and type checkers; an attribute could not replace a property.
for _name in MEMBERS:
    setattr(World, _name, Member(_name, getattr(World, _name).__doc__))
