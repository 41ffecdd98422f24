"""Bandits that write down what they decide and learn, before they answer."""

from keyhole.online.logged.bandit import LoggedBandit

__all__ = ["LoggedBandit"]
