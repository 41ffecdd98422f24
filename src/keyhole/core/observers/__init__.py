"""Observers: the conversion of records and observations to the columns of a posterior."""

from keyhole.core.observers.encoder import Encoder
from keyhole.core.observers.features import Features
from keyhole.core.observers.layout import Layout
from keyhole.core.observers.moments import Moments
from keyhole.core.observers.observer import CLIP, LOOKS, PREDICTED, REWARDS, Effects, Fill, Observer
from keyhole.core.observers.ranges import Range
from keyhole.core.observers.recipe import OPTIONS, Recipe
from keyhole.core.observers.sensor import Belief, Doubt, Sensor, View
from keyhole.core.observers.transformed import Transformed
from keyhole.core.observers.units import MIN_SEEN, SAMPLE, Sample, Units

__all__ = [
    "CLIP",
    "LOOKS",
    "MIN_SEEN",
    "OPTIONS",
    "PREDICTED",
    "REWARDS",
    "SAMPLE",
    "Belief",
    "Doubt",
    "Effects",
    "Encoder",
    "Features",
    "Fill",
    "Layout",
    "Moments",
    "Observer",
    "Range",
    "Recipe",
    "Sample",
    "Sensor",
    "Transformed",
    "Units",
    "View",
]
