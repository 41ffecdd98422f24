"""Simulation of policies in worlds."""

from keyhole.lab.simulation.plan import Plan, Playable, WorldRecipe
from keyhole.lab.simulation.progress import columns
from keyhole.lab.simulation.replication import checked_rounds
from keyhole.lab.simulation.results import versions
from keyhole.lab.simulation.run import SimulationInterrupted, simulate
from keyhole.lab.simulation.runs import CompiledRun
from keyhole.lab.simulation.sources import SOURCES

__all__ = [
    "SOURCES",
    "CompiledRun",
    "Plan",
    "Playable",
    "SimulationInterrupted",
    "WorldRecipe",
    "checked_rounds",
    "columns",
    "simulate",
    "versions",
]
