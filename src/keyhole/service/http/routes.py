"""All native routes: method, path, handler, role, and an entry in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from keyhole.service.http import (
    batches,
    deciding,
    events,
    logpage,
    loops,
    model,
    openapi,
    reads,
    status,
)
from keyhole.service.http.about import About
from keyhole.service.http.routing import Route
from keyhole.service.requests import DecideAnswer, DecideRequest, RewardAnswer, RewardRequest
from keyhole.service.settings import LoopSettings

LOOP = "/v1/loops/{loop}"
EVENT = LOOP + "/events/{event}"


def native_routes() -> list[Route]:
    """Return the native routes."""
    return [
        Route(
            method="GET",
            path="/v1/loops",
            handler=loops.list_loops,
            role="read",
            about=About("List the loops.", {200: loops.LoopList}),
        ),
        Route(
            method="PUT",
            path=LOOP,
            handler=loops.put_loop,
            role="admin",
            about=About(
                "Create a loop, or change its settings.",
                {200: loops.LoopView, 201: loops.LoopView},
                body=LoopSettings,
                problems=(409,),
            ),
        ),
        Route(
            method="GET",
            path=LOOP,
            handler=loops.get_loop,
            role="read",
            about=About("Show a loop.", {200: loops.LoopView}),
        ),
        Route(
            method="POST",
            path=LOOP + "/decide",
            handler=deciding.decide,
            is_straight=True,
            role="decide",
            about=About("Decide.", {200: DecideAnswer}, body=DecideRequest, problems=(409, 410)),
        ),
        Route(
            method="POST",
            path=LOOP + "/decide:batch",
            handler=deciding.decide_batch,
            role="decide",
            about=About(
                "Decide for each line.",
                {200: (batches.Decision, batches.Refused)},
                body=DecideRequest,
                lines=True,
            ),
        ),
        Route(
            method="POST",
            path=LOOP + "/rewards",
            handler=events.reward_batch,
            role="reward",
            about=About(
                "Take the reward of each line.",
                {200: (batches.Reward, batches.Refused)},
                body=events.RewardLine,
                lines=True,
            ),
        ),
        Route(
            method="POST",
            path=LOOP + "/arms",
            handler=loops.change_arms,
            role="admin",
            about=About("Add or remove arms.", {200: loops.LoopView}, body=loops.NewArms),
        ),
        Route(
            method="POST",
            path=LOOP + "/observe",
            handler=loops.observe,
            role="decide",
            about=About(
                "Record contexts without a decision.",
                {200: loops.Changed},
                body=loops.Observations,
            ),
        ),
        *_event_routes(),
        *_read_routes(),
        *_status_routes(),
    ]


def _event_routes() -> list[Route]:
    return [
        Route(
            method="POST",
            path=EVENT + "/reward",
            handler=events.reward,
            is_straight=True,
            role="reward",
            about=About(
                "Take a reward of an event.",
                {200: RewardAnswer},
                body=RewardRequest,
                problems=(410,),
            ),
        ),
        Route(
            method="POST",
            path=EVENT + "/activate",
            handler=events.activate,
            is_straight=True,
            role="decide",
            about=About("Make a deferred event active.", {200: events.Done}, problems=(410,)),
        ),
        Route(
            method="GET",
            path=EVENT,
            handler=events.event,
            role="read",
            about=About(
                "Show an event.",
                {200: events.EventView},
                query={"explain": {"schema": {"type": "boolean"}}},
                problems=(410,),
            ),
        ),
        Route(
            method="DELETE",
            path=EVENT,
            handler=events.forget,
            role="admin",
            about=About("Forget an event.", {200: events.Done}, problems=(410,)),
        ),
    ]


def _read_routes() -> list[Route]:
    octets = "application/octet-stream"
    value: dict[str, Any] = {"content": {"application/json": {}}}
    number = {"schema": {"type": "integer", "minimum": 0}}
    count = {"schema": {"type": "integer", "minimum": 1}}
    return [
        Route(
            method="GET",
            path=LOOP + "/effects",
            handler=reads.effects,
            role="read",
            about=About("Show the estimates of each arm.", {200: reads.EffectsView}),
        ),
        Route(
            method="GET",
            path=LOOP + "/probabilities",
            handler=reads.get_probabilities,
            role="read",
            about=About(
                "Show how likely each candidate is; nothing is drawn.",
                {200: reads.ProbabilitiesView},
                query={"context": value, "actions": value, "exclude": value, "at_least": number},
                problems=(409,),
            ),
        ),
        Route(
            method="POST",
            path=LOOP + "/probabilities",
            handler=reads.post_probabilities,
            role="read",
            about=About(
                "Show how likely each candidate is; nothing is drawn.",
                {200: reads.ProbabilitiesView},
                body=DecideRequest,
                problems=(409,),
            ),
        ),
        Route(
            method="GET",
            path=LOOP + "/model",
            handler=model.get_model,
            role="read",
            about=About("Download the bandit.", {200: None}, content=octets),
        ),
        Route(
            method="PUT",
            path=LOOP + "/model",
            handler=model.put_model,
            role="admin",
            about=About(
                "Make a loop that continues a saved bandit.",
                {201: loops.LoopView},
                takes=octets,
                problems=(409,),
            ),
        ),
        Route(
            method="GET",
            path=LOOP + "/log",
            handler=logpage.log,
            role="read",
            about=About(
                "Read rows of the log, as JSON lines or as Arrow.",
                {200: None},
                query={"after": number, "limit": count},
                content="application/x-ndjson",
                contents=(logpage.ARROW,),
                problems=(410,),
            ),
        ),
    ]


def _status_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            path="/healthz",
            handler=status.healthz,
            role=None,
            about=About("Say that the process answers.", {200: status.Status}),
        ),
        Route(
            method="GET",
            path="/readyz",
            handler=status.readyz,
            role=None,
            about=About("Say whether decisions can be written.", {200: status.Status}),
        ),
        Route(
            method="GET",
            path="/openapi.json",
            handler=openapi.openapi,
            role=None,
            about=About("This document.", {200: None}),
        ),
        Route(
            method="GET",
            path="/metrics",
            handler=status.metrics,
            role="read",
            about=About("Metrics for Prometheus.", {200: None}, content="text/plain"),
        ),
    ]
