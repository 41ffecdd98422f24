"""Observers: the conversion of observations to the columns of a posterior."""

from keyhole.core.observers.features import CLIP, LOOKS, PREDICTED, REWARDS, Effects, Features, Fill
from keyhole.core.observers.moments import Moments
from keyhole.core.observers.sensor import Belief, Doubt, Sensor, View
from keyhole.core.observers.units import MIN_SEEN, SAMPLE, Sample, Units

__all__ = [
    "CLIP",
    "LOOKS",
    "MIN_SEEN",
    "PREDICTED",
    "REWARDS",
    "SAMPLE",
    "Belief",
    "Doubt",
    "Effects",
    "Features",
    "Fill",
    "Moments",
    "Sample",
    "Sensor",
    "Units",
    "View",
]
