"""The decision service over HTTP: an ASGI application, and the server that runs it."""

from keyhole.service.http.events import Done, EventView
from keyhole.service.http.limits import Limits
from keyhole.service.http.loops import LoopView
from keyhole.service.http.making import Options, application
from keyhole.service.http.reads import ProbabilitiesView
from keyhole.service.http.server import serve

__all__ = [
    "Done",
    "EventView",
    "Limits",
    "LoopView",
    "Options",
    "ProbabilitiesView",
    "application",
    "serve",
]
