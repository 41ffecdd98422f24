"""Clients of the decision service, from Python; they need httpx, of the extra `service`."""

from keyhole.service.client.awaiting import AsyncClient
from keyhole.service.client.blocking import Client
from keyhole.service.client.calls import ServiceError

__all__ = ["AsyncClient", "Client", "ServiceError"]
