"""Worlds: sources of rounds, for simulation."""

from keyhole.worlds.dataset import DatasetWorld
from keyhole.worlds.linear import LinearWorld
from keyhole.worlds.missing import MissingWorld, RandomMissingWorld
from keyhole.worlds.random_dataset import RandomDatasetWorld
from keyhole.worlds.random_linear import RandomLinearWorld
from keyhole.worlds.rounds import Rounds, World

__all__ = [
    "DatasetWorld",
    "LinearWorld",
    "MissingWorld",
    "RandomDatasetWorld",
    "RandomLinearWorld",
    "RandomMissingWorld",
    "Rounds",
    "World",
]
