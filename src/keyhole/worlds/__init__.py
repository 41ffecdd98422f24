"""Worlds: sources of rounds, for simulation."""

from keyhole.worlds.linear import LinearWorld
from keyhole.worlds.random_linear import RandomLinearWorld
from keyhole.worlds.rounds import Rounds, World

__all__ = ["LinearWorld", "RandomLinearWorld", "Rounds", "World"]
