"""Bandits around scikit-learn's transformers, and features in simulations."""

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import keyhole as kh
from keyhole.core.observers.fits import fit_digest
from tests.core.test_learners import OPTIONS, deployed_arms, simulated_arms, world_of
from tests.named import made

RNG = np.random.default_rng(1)
ROWS = RNG.standard_normal((200, 4)) @ RNG.standard_normal((4, 4)) + 5.0
FRAME = pd.DataFrame({"age": ROWS[:, 0], "device": ["mobile", "tv", "tv", "mobile"] * 50})


def pipelines() -> dict[str, Any]:
    return {
        "scaler": StandardScaler().fit(ROWS),
        "pca": make_pipeline(StandardScaler(), PCA(n_components=2)).fit(ROWS),
    }


@pytest.mark.parametrize("kind", ["scaler", "pca"])
def test_arrays_are_inputs_of_a_transformer(kind: str) -> None:
    """The same choices as a plain bandit on the transformer's output, then files and explain."""
    transformer = pipelines()[kind]
    features = kh.Transformed(transformer)
    bandit = made(features)
    columns = transformer.transform(ROWS)
    plain = kh.Bandit(
        kh.Learner(kh.ThompsonSampling(v=1.0), intercept=True),
        arms=["A", "B"],
        dim=columns.shape[1],
        seed=3,
    )
    for t, (row, output) in enumerate(zip(ROWS, columns, strict=True)):
        one, other = bandit.choose(row), plain.choose(output)
        assert one.arm == other.arm
        assert one.score == pytest.approx(other.score)
        np.testing.assert_allclose(one.observation, output, atol=1e-12)
        reward = float(row.sum() * (one.arm == "A") + t % 3)
        bandit.learn(kh.Decision.from_dict(json.loads(json.dumps(one.to_dict()))), reward)
        plain.learn(other, reward)
    np.testing.assert_allclose(bandit.posterior.mean, plain.posterior.mean, atol=1e-9)
    decision = bandit.choose(ROWS[0])
    by_hand = bandit._observer.design(columns[:1])[0] @ bandit.posterior.mean.T
    expected = dict(zip(bandit.arms, by_hand + bandit._observer.offset, strict=True))
    for found in (bandit.explain(decision), bandit.explain(decision, ROWS[0])):
        assert found.expected[0] == pytest.approx(expected[decision.arm])
    saved = bandit.to_bytes()
    with pytest.raises(kh.FileError, match="features="):
        kh.Bandit.load(saved)
    again = kh.Bandit.load(saved, features=features, resume=True)
    assert again.choose(ROWS[1]).score == bandit.choose(ROWS[1]).score
    batch = bandit.choose_many(ROWS[:5])
    np.testing.assert_allclose(batch.observations, columns[:5], atol=1e-12)
    each = bandit.choose(ROWS[:2])  # a row for each arm
    assert min(abs(each.observation[0] - columns[:2, 0])) < 1e-12
    assert bandit.choice_probabilities(ROWS[0]).keys() == {"A", "B"}
    bandit.observe(ROWS[:3])


def test_records_and_frames_are_inputs_by_name() -> None:
    transformer = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["device"])
    ).fit(FRAME)
    bandit = made(kh.Transformed(transformer))
    for k in range(40):
        record = {"age": float(FRAME["age"][k]), "device": FRAME["device"][k]}
        decision = bandit.choose(record)
        expected = transformer.transform(FRAME[k : k + 1])[0]
        np.testing.assert_allclose(decision.observation, expected)
        bandit.learn(decision, 1.0 + 2.0 * (record["device"] == "tv"))
    assert "onehotencoder__device_tv" in bandit.effects["A"].by_name
    assert len(bandit.choose_many(FRAME[:7])) == 7
    before = bandit.to_bytes()
    for bad in ({"age": 1.0, "device": "fridge"}, {"agee": 1.0}, None, [[1.0], [1.0, 2.0]]):
        with pytest.raises(kh.InvalidValue):
            bandit.choose(bad)  # type: ignore[arg-type]
        assert bandit.to_bytes() == before


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
@pytest.mark.parametrize("cross", [(), (("a", "b"), ("c", "c"))], ids=["plain", "crossed"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: "-".join(map(str, given.values())))
def test_features_are_simulated_as_they_are_deployed(options: dict[str, Any], cross: Any) -> None:
    features = kh.Features(numbers=["a", "b", "c"], cross=list(cross), **options)
    learner = kh.Learner(kh.ThompsonSampling(), features)
    world = world_of(options["missing"], shared=True)
    simulated = simulated_arms(world, learner, 300, seed=5)
    assert simulated == deployed_arms(world, learner, 300, seed=5)
    without = kh.Learner(kh.ThompsonSampling(), **options)
    same = simulated == simulated_arms(world, without, 300, seed=5)
    assert same == (not cross)


def test_another_fit_of_the_same_columns_is_another() -> None:
    """Decisions, files and merges tell two fits apart; a copy of one is the same."""
    other_rows = pd.DataFrame({"age": ROWS[:100, 0] * 2.0, "device": ["mobile", "tv"] * 50})
    one, other = (
        kh.Transformed(
            make_column_transformer(
                (StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["device"])
            ).fit(frame)
        )
        for frame in (FRAME, other_rows)
    )
    same = kh.Transformed(pickle.loads(pickle.dumps(one.transformer)))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    first, second, third = made(one), made(other), made(same)
    decision = first.choose({"age": 1.0, "device": "tv"})
    with pytest.raises(kh.InvalidValue, match=r"other features.*fit differ"):
        second.learn(decision, 1.0)
    with pytest.raises(kh.InvalidValue, match="same learner"):
        second.merge(first)
    with pytest.raises(kh.FileError, match="a transformer of the same fit"):
        kh.Bandit.load(first.to_bytes(), features=other)
    third.learn(kh.Decision.from_dict(decision.to_dict()), 1.0)
    first.merge(third)
    assert kh.Bandit.load(first.to_bytes(), features=same).counts == first.counts


def test_functions_and_settings_tell_fits_apart() -> None:
    made_of = [
        FunctionTransformer(np.log1p).fit(abs(ROWS)),
        FunctionTransformer(np.sqrt).fit(abs(ROWS)),
        FunctionTransformer(lambda x: x + 1.0).fit(ROWS),
        FunctionTransformer(lambda x: x + 2.0).fit(ROWS),
        make_pipeline(StandardScaler(), PCA(n_components=2)).fit(ROWS),
        make_pipeline(StandardScaler(), PCA(n_components=2)).fit(ROWS[:150]),
        make_pipeline(StandardScaler(), PCA(n_components=2, whiten=True)).fit(ROWS),
    ]
    digests = [fit_digest(one) for one in made_of]
    assert len(set(digests)) == len(digests)
    assert [fit_digest(one) for one in made_of] == digests
