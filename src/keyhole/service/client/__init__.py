"""Clients of the decision service, from Python; they need httpx, of the extra `service`."""

from keyhole.service.client.answers import ServiceError
from keyhole.service.client.awaiting import AsyncClient
from keyhole.service.client.blocking import Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
