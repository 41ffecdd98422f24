"""Simulating how well policies do."""

from keyhole.simulation.run import SimulationInterrupted, simulate

__all__ = ["SimulationInterrupted", "simulate"]
