"""All that the theory says of a world's regret, in one picture."""

from __future__ import annotations

import numpy as np
import pytest

import keyhole as kh
from keyhole.lab.audit import overview
from keyhole.theory import instance

WORLD = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)


def test_lines_are_in_their_order() -> None:
    """Simulated below certified below repaired below printed, at the end of a run."""
    found = overview(WORLD, instance(WORLD), horizon=10_000, delta=0.05, seed=2)
    assert found.certificate is not None
    assert found.runs is not None
    final = found.runs.regret.isel(time=-1)
    last = [found.lines[f"theorem 2 ({word})"][-1] for word in ("repaired", "open")]
    assert float(final.max()) < found.certificate.value < last[0] < last[1]
    assert found.derivation.rows[-1].value == found.certificate.value
    # Within five standard errors of 50 runs, and the 3% that the asymptote's page measured.
    error = float(final.std(ddof=1)) / np.sqrt(final.replication.size)
    expected = found.lines["expected (derived)"][-1]
    assert expected == pytest.approx(float(final.mean()), abs=5 * error + 0.03 * expected)
    figure = kh.plots.overview(found.derivation, found.certificate, found.runs, lines=found.lines)
    left, right = figure.axes
    labels = [line.get_label() for line in left.get_lines()]
    for name in ("trivial", "certificate", "simulated mean", *found.lines):
        assert name in labels
    assert [text.get_text() for text in right.get_yticklabels()][-1] == "certificate"


def test_without_a_certificate_there_is_the_waterfall() -> None:
    from dataclasses import replace

    shared = replace(WORLD, shared_context=True)
    found = overview(shared, instance(shared), horizon=500, delta=0.05)
    assert (found.certificate, found.lines) == (None, {})
    assert len(kh.plots.overview(found.derivation, None, found.runs).axes) == 1
