"""The constant of the regret and its finite-time form, derived in docs/how-to/asymptote.md."""

from keyhole.theory.asymptotics.asymptotes import Asymptote, asymptote
from keyhole.theory.asymptotics.exploring import Exploration, exploration
from keyhole.theory.asymptotics.sensing import Change, SensorRow, sensor_rows

__all__ = [
    "Asymptote",
    "Change",
    "Exploration",
    "SensorRow",
    "asymptote",
    "exploration",
    "sensor_rows",
]
