"""Simulating how well policies do."""

from keyhole.simulation.plan import WorldRecipe
from keyhole.simulation.progress import bar
from keyhole.simulation.results import versions
from keyhole.simulation.run import SimulationInterrupted, simulate

__all__ = ["SimulationInterrupted", "WorldRecipe", "bar", "simulate", "versions"]
