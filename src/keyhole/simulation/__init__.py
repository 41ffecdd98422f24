"""Simulating how well policies do."""

from keyhole.simulation.plan import WorldRecipe
from keyhole.simulation.results import versions
from keyhole.simulation.run import SimulationInterrupted, simulate

__all__ = ["SimulationInterrupted", "WorldRecipe", "simulate", "versions"]
