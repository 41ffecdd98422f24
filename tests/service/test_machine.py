"""Clients in any order, beside the contract in plain Python; `make torture` tries far more."""

import os

from hypothesis import HealthCheck, settings

from tests.service.machine import Clients

LONG = int(os.environ.get("KEYHOLE_EXAMPLES", "0"))

TestClients = Clients.TestCase
TestClients.settings = settings(
    max_examples=LONG or 30,
    stateful_step_count=6,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
