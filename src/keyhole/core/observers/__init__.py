"""Observers: the conversion of observations to the columns of a posterior."""

from keyhole.core.observers.moments import Moments
from keyhole.core.observers.observer import CLIP, LOOKS, PREDICTED, REWARDS, Effects, Fill, Observer
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
    "Fill",
    "Moments",
    "Observer",
    "Sample",
    "Sensor",
    "Units",
    "View",
]
