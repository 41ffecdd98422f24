"""Bandits that write down what they decide and learn, before they answer."""

from keyhole.online.logged.bandit import LoggedBandit
from keyhole.online.logged.own import LoggedOwnBandit
from keyhole.online.logged.sensing import LoggedSensorBandit

__all__ = ["LoggedBandit", "LoggedOwnBandit", "LoggedSensorBandit"]
