"""A block of rounds, and the world that hands them out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from keyhole import checks
from keyhole.core import Floats, Ints, Seed, Streams, streams
from keyhole.lab.worlds.identity import digest, identity


@dataclass(frozen=True)
class Rounds:
    """What T rounds hold, whichever arms are going to be chosen."""

    observations: Floats  # (T, n_arms, dim), or (T, 1, dim) where the arms share one
    rewards: Floats  # (T, n_arms)  what each arm would give
    values: Floats  # (T, n_arms)  y'eta, what the best observer expects of it
    latent: Floats  # (T, n_arms)  x'mu, what one who sees x expects; NaN where nobody knows
    labels: Ints | None = None  # (T,)  the arm that is the right answer, where there is one

    def __len__(self) -> int:
        return len(self.rewards)


class Member:
    """A member that a world must have: in its class, as a property, or set in `__init__`.

    Unlike a property, it lets an attribute of the same name take its place.
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


# What every world has, besides its rounds.
MEMBERS = ("n_arms", "dim", "eta", "noise_scale")


class World(ABC):
    """A source of rounds. A world of your own is a subclass with these five members.

    All but `rounds` may be attributes of the class, properties, or attributes that `__init__`
    sets. A policy in it sees `observations` and the reward of the arm that it pulls; the rest of a
    block serves to judge it. Numbers are finite and up to 1e50.
    """

    # Whether all arms see one observation, (n, 1, dim): blocks of more rounds then fit the cache.
    shared_context: bool = False

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
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

        A policy with v="oracle" takes it. It must be finite; the theory's R need not be.
        """
        raise NotImplementedError

    def start(self, source: Streams) -> Any:
        """Return what `rounds` goes on from: by default the random streams, and nothing else.

        A world whose rounds depend on the rounds before, such as one whose context has a memory,
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
            What `start` returned.
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
            Where random numbers come from.
        """
        return self.rounds(self.start(streams(seed)), checks.whole("n", n, least=0))

    def describe(self) -> dict[str, Any]:
        """What a result's attributes say of the world it comes from, and what tells it apart."""
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


# Written as properties for those who read and check types; an attribute could not replace those.
for _name in MEMBERS:
    setattr(World, _name, Member(_name, getattr(World, _name).__doc__))
