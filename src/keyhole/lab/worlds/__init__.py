"""Worlds: sources of rounds, for simulation."""

from keyhole.lab.worlds.cohort import CohortWorld
from keyhole.lab.worlds.dataset import DatasetWorld
from keyhole.lab.worlds.describing import digest, identity
from keyhole.lab.worlds.linear import LinearWorld
from keyhole.lab.worlds.missing import MissingWorld, RandomMissingWorld
from keyhole.lab.worlds.products import product
from keyhole.lab.worlds.random_dataset import RandomDatasetWorld, Rewards
from keyhole.lab.worlds.random_linear import RandomLinearWorld
from keyhole.lab.worlds.recording import as_text, from_text
from keyhole.lab.worlds.rounds import MEMBERS, Rounds, World
from keyhole.lab.worlds.sensors import SensorWorld

__all__ = [
    "MEMBERS",
    "CohortWorld",
    "DatasetWorld",
    "LinearWorld",
    "MissingWorld",
    "RandomDatasetWorld",
    "RandomLinearWorld",
    "RandomMissingWorld",
    "Rewards",
    "Rounds",
    "SensorWorld",
    "World",
    "as_text",
    "digest",
    "from_text",
    "identity",
    "product",
]
