"""`evaluate` as a whole: coverage, refusals, results, choosing v, pictures."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import keyhole as kh
from keyhole.evaluation import Logged, audit_log, choose_v, gain_sequence, value_sequence
from keyhole.lab.studies.thompson_logs import ThompsonLogs, targets, truth
from tests.logs import online_columns, random_columns


def test_minvar_covers_where_a_plain_mean_does_not() -> None:
    """150 Thompson logs without a floor; 4 standard errors of a share of 95% are 7%."""
    rng = np.random.default_rng(11)
    inside: dict[str, list[bool]] = {"minvar": [], "dr": []}
    for _ in range(150):
        world = ThompsonLogs(n_arms=2, signal=0.6, epsilon=0.0).draw(rng, 400)
        found = kh.evaluate(world.log, {"uniform": "uniform"}, estimator=list(inside), min_size=0.0)
        for row in found.rows:
            inside[row.estimator].append(row.low <= truth(world, "uniform") <= row.high)
    assert np.mean(inside["minvar"]) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 150)
    assert np.mean(inside["dr"]) < 0.95 - 4 * np.sqrt(0.95 * 0.05 / 150)


def test_every_target_of_the_grid_is_estimated_without_bias() -> None:
    """Over 60 logs with a floor, the mean error is within 4 standard errors of 0."""
    rng = np.random.default_rng(12)
    errors: dict[str, list[float]] = {}
    for _ in range(60):
        world = ThompsonLogs(n_arms=3, signal=0.6, epsilon=0.1).draw(rng, 300)
        for row in kh.evaluate(world.log, targets(world), min_size=0.0).rows:
            errors.setdefault(row.policy, []).append(row.value - truth(world, row.policy))
    assert len(errors) == 5
    for found in errors.values():
        assert abs(np.mean(found)) <= 4 * np.std(found) / np.sqrt(60)


def test_a_small_effective_size_is_refused_with_a_reason() -> None:
    log = Logged(
        arms=["A", "B"],
        chosen=[0] * 95 + [1] * 5,
        probability=[0.95] * 95 + [0.05] * 5,
        probabilities=[[0.95, 0.05]] * 100,
        reward=np.zeros(100),
    )
    found = kh.evaluate(log, ["B", "A"], estimator="snips")
    assert np.isnan(found["B"].value)
    assert found["B"].note.startswith("refused: the effective sample size is 5.0, below 30")
    assert found["B"].note in str(found)
    assert found["A"].note.startswith("all rewards that count are equal")
    assert found["B"].unsupported == 0.0
    assert kh.evaluate(log, "B", estimator="snips", min_size=5).rows[0].value == 0.0
    with pytest.raises(KeyError):
        found["C"]


def test_a_mean_weight_far_from_1_is_noted() -> None:
    columns = random_columns(2000)
    columns["probability"] = np.full(2000, 0.9)
    del columns["probabilities"]
    row = kh.evaluate(columns, "uniform", estimator="ips", check=False).rows[0]
    assert "the mean weight is 0.278, and 1 is expected" in row.note


def test_the_unsupported_share_by_hand() -> None:
    """With 100 rounds, probabilities below 0.01 do not count as support."""
    log = Logged(
        arms=["A", "B"],
        chosen=[0] * 100,
        probability=[0.995] * 50 + [0.5] * 50,
        probabilities=[[0.995, 0.005]] * 50 + [[0.5, 0.5]] * 50,
        reward=np.zeros(100),
    )
    found = kh.evaluate(log, "uniform", estimator="ips", check=False)
    assert found.rows[0].unsupported == pytest.approx(0.25)


def test_a_result_is_a_table_and_a_frame() -> None:
    columns = online_columns(kh.ThompsonSampling(v=1.0), rounds=300)
    found = kh.evaluate(columns, [kh.Greedy(), "as logged"], estimator=["dr", "dm"])
    frame = found.to_frame()
    assert list(frame.policy) == ["Greedy()", "Greedy()", "as logged", "as logged"]
    assert frame.value.tolist() == [row.value for row in found.rows]
    text = str(found)
    assert text.splitlines()[0].startswith("300 of 300 rounds, mean reward")
    assert text.splitlines()[1].split() == [
        *("policy", "estimator", "value", "95%", "gain", "95%", "size")
    ]


def test_v_is_chosen_only_if_it_is_better_for_sure() -> None:
    """Far too much exploration: a smaller v gains. At the best v of a short log none is sure."""
    wild = online_columns(kh.ThompsonSampling(v=20.0), rounds=600)
    found = choose_v(wild)
    assert found.v is not None
    assert found.v < 20.0
    assert f"v = {found.v:g}" in str(found)
    assert found.evaluation.level == pytest.approx(1 - 0.05 / 7)
    calm = online_columns(kh.ThompsonSampling(v=0.5), rounds=60)
    assert choose_v(calm, [0.4, 0.5, 0.6]).v is None
    assert "keep the logged policy" in str(choose_v(calm, [0.5]))
    own = choose_v(calm, [0.5]).evaluation.rows[0]
    assert own.mean_weight == pytest.approx(1.0, abs=1e-9)


def test_other_v_keep_the_logged_floor() -> None:
    rng = np.random.default_rng(13)
    log = ThompsonLogs(n_arms=3, signal=0.6, epsilon=0.2).draw(rng, 300).log
    own = choose_v(log, [1.0]).evaluation.rows[0]
    assert own.mean_weight == pytest.approx(1.0, abs=1e-9)
    assert own.max_weight == pytest.approx(1.0, abs=1e-9)


def test_a_grid_of_v_is_checked() -> None:
    with pytest.raises(kh.InvalidValue, match="must have the column 'dispersion'"):
        choose_v(random_columns())
    with pytest.raises(kh.InvalidValue, match="values must be one or more numbers"):
        choose_v(online_columns(kh.ThompsonSampling(v=1.0), rounds=20), [-1.0])


def test_pictures() -> None:
    columns = online_columns(kh.ThompsonSampling(v=1.0), rounds=300)
    found = kh.evaluate(columns, {"$v$": kh.Greedy(), "1": kh.Uniform()}, estimator=["dr", "dm"])
    refused = kh.evaluate(columns, "as logged", min_size=1e6)
    columns["reward"] = (columns["reward"] > 0) * 1.0
    for one in (
        found,
        refused,
        audit_log(columns),
        value_sequence(columns, kh.Uniform()),
        gain_sequence(columns, kh.Uniform()),
    ):
        figure = one.plot()
        assert isinstance(figure, Figure)
        figure.canvas.draw()


def test_evaluation_needs_no_laboratory_and_pictures_say_what_they_need() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['pandas'] = None\n"
        "import keyhole as kh\n"
        "log = dict(arms=['A', 'B'], chosen=[0, 1] * 50, probability=[0.5] * 100,"
        " reward=[1.0, 3.0] * 50)\n"
        "found = kh.evaluate(log, 'B', estimator='snips')\n"
        "for ask in (found.plot, found.to_frame):\n"
        "    try: ask()\n"
        "    except kh.MissingExtra as error: print(error)\n"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert shown[0].startswith("Evaluation.plot needs matplotlib, which is not installed")
    assert shown[1].startswith("Evaluation.to_frame needs pandas, which is not installed")
