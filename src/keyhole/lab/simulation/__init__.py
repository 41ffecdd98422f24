"""Simulation of policies in worlds."""

from keyhole.lab.simulation.final import Endings, endings
from keyhole.lab.simulation.plan import Plan, Playable, WorldRecipe
from keyhole.lab.simulation.progress import columns
from keyhole.lab.simulation.results import versions
from keyhole.lab.simulation.run import SimulationInterrupted, simulate
from keyhole.lab.simulation.sources import SOURCES

__all__ = [
    "SOURCES",
    "Endings",
    "Plan",
    "Playable",
    "SimulationInterrupted",
    "WorldRecipe",
    "columns",
    "endings",
    "simulate",
    "versions",
]
