"""A fitted transformer in the place of a recipe: scikit-learn's own, and others."""

import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from keyhole.core import Transformed
from keyhole.errors import InvalidValue

FRAME = pd.DataFrame({"age": [20.0, 40.0, 60.0], "device": ["mobile", "desktop", "mobile"]})


def fitted(sparse: bool = False) -> Any:
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler(with_mean=False)), ["age"]),
        (OneHotEncoder(sparse_output=sparse), ["device"]),
        sparse_threshold=1.0 if sparse else 0.0,
    ).fit(FRAME)


class Own:
    """A transformer that is not of scikit-learn."""

    n_features_in_ = 2

    def __init__(self, output: Any) -> None:
        self.output = output

    def transform(self, rows: np.ndarray) -> Any:
        return self.output(rows)


@pytest.mark.parametrize("sparse", [False, True])
def test_records_are_transformed_by_name(sparse: bool) -> None:
    encoder = Transformed(fitted(sparse)).start()
    assert encoder.names == (
        "pipeline__age",
        "onehotencoder__device_desktop",
        "onehotencoder__device_mobile",
    )
    row, same = encoder.encode({"device": "desktop", "age": 49.0})
    np.testing.assert_allclose(row, [49.0 / FRAME["age"].std(ddof=0), 1.0, 0.0])
    assert same is encoder
    assert encoder.dim == 3
    assert not encoder.is_indicator.any()
    assert encoder.crosses.shape == (0, 2)
    assert encoder.group.tolist() == [0, 1, 2]
    assert dict(encoder.levels) == {}
    # A missing field is NaN, which this pipeline replaces by the mean.
    np.testing.assert_allclose(
        encoder.encode({"device": "mobile"})[0], encoder.encode({"device": "mobile", "age": 40})[0]
    )


def test_a_frame_is_its_rows() -> None:
    encoder = Transformed(fitted()).start()
    records = FRAME.to_dict("records")
    expected = [encoder.encode(record)[0] for record in records]
    np.testing.assert_allclose(fitted().transform(FRAME), expected)
    for frame in (FRAME, FRAME[["device", "age"]], pl.from_pandas(FRAME), records):
        np.testing.assert_allclose(encoder.encode_frame(frame)[0], expected)


def test_without_names_a_record_is_a_row() -> None:
    scaler = StandardScaler().fit(np.array([[0.0, 10.0], [2.0, 30.0]]))
    encoder = Transformed(scaler).start()
    assert encoder.encode([2.0, 10.0])[0].tolist() == [1.0, -1.0]
    assert encoder.encode_frame([[2.0, 10.0], [1.0, 20.0]])[0].tolist() == [[1, -1], [0, 0]]
    own = Transformed(Own(lambda rows: rows @ np.ones((2, 3)))).start()
    assert own.names == ("column 0", "column 1", "column 2")
    assert own.encode([1.0, 2.0])[0].tolist() == [3.0, 3.0, 3.0]


def test_output_of_pandas_is_read() -> None:
    encoder = Transformed(fitted().set_output(transform="pandas").fit(FRAME)).start()
    np.testing.assert_allclose(encoder.encode_frame(FRAME)[0], fitted().transform(FRAME))


def test_it_can_be_pickled() -> None:
    encoder = pickle.loads(pickle.dumps(Transformed(fitted()).start()))
    np.testing.assert_allclose(encoder.encode_frame(FRAME)[0], fitted().transform(FRAME))


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        OneHotEncoder(),
        make_pipeline(SimpleImputer(), StandardScaler()),
        FunctionTransformer(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_transformer_that_was_not_fitted(transformer: Any) -> None:
    with pytest.raises(InvalidValue, match="fitted"):
        Transformed(transformer)


def test_a_transformer_that_cannot_be_copied() -> None:
    locked = StandardScaler().fit(np.ones((3, 2)))
    locked.lock = threading.Lock()
    with pytest.raises(InvalidValue, match=r"can be copied, .*lock"):
        Transformed(locked)


def test_a_later_fit_changes_nothing() -> None:
    """(x - 1) / 1 before, (x - 100) / 100 after, and a pipeline's step as well."""
    rows = np.array([[0.0], [2.0]])
    scaler = StandardScaler().fit(rows)
    for transformer in (scaler, make_pipeline(scaler)):
        recipe = Transformed(transformer)
        encoder, digest = recipe.start(), recipe.start().digest
        transformer.fit(100.0 * rows)
        for each in (encoder, recipe.start()):
            assert each.encode([3.0])[0].tolist() == [2.0]
            assert each.digest == digest
        assert Transformed(transformer).start().digest != digest
        transformer.fit(rows)


@pytest.mark.parametrize("transformer", [None, 3, "scaler", StandardScaler, object()])
def test_what_is_no_transformer(transformer: Any) -> None:
    with pytest.raises(InvalidValue, match="transformer must be a fitted object with transform"):
        Transformed(transformer)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda rows: rows[0], r"must be of two dimensions, got shape \(2,\)"),
        (lambda rows: rows.astype(str), "output must be real numbers"),
        (lambda rows: rows + np.inf, "output must be finite"),
        (lambda _: 1 / 0, "the transformer failed: ZeroDivisionError"),
    ],
)
def test_output_that_cannot_be_used(output: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Transformed(Own(output)).start()


def test_a_number_of_columns_that_changes() -> None:
    encoder = Transformed(Own(lambda rows: np.ones((len(rows), 2 + int(rows.sum()))))).start()
    with pytest.raises(InvalidValue, match=r"must give shape \(1, 2\), got \(1, 3\)"):
        encoder.encode([1.0, 0.0])


def test_bad_records() -> None:
    encoder = Transformed(fitted()).start()
    with pytest.raises(InvalidValue, match=r"got 'agee'\. Did you mean age"):
        encoder.encode({"agee": 3})
    with pytest.raises(InvalidValue, match="a record must be a dict"):
        encoder.encode([1.0, 2.0])
    with pytest.raises(InvalidValue, match=r"the transformer failed: .*unknown categories"):
        encoder.encode({"age": 3, "device": "tv"})
    with pytest.raises(InvalidValue, match="no column 'device'"):
        encoder.encode_frame(FRAME[["age"]])
    with pytest.raises(InvalidValue, match="no features of arms"):
        encoder.encode({"age": 3, "device": "mobile"}, [{"price": 1}])
    with pytest.raises(InvalidValue, match="missing must be one of"):
        Transformed(fitted(), missing="guess")  # type: ignore[arg-type]
    rows = Transformed(StandardScaler().fit(np.ones((3, 2)))).start()
    with pytest.raises(InvalidValue, match="rows must be of two dimensions"):
        rows.encode([[1.0, 2.0]])
    with pytest.raises(InvalidValue, match="the transformer failed"):
        rows.encode([1.0, 2.0, 3.0])


def test_the_core_imports_no_package_of_frames() -> None:
    code = (
        "import sys, keyhole.core\n"
        "print({'sklearn', 'pandas', 'polars', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_functions_are_told_apart_by_what_they_do() -> None:
    from keyhole.core.observers.fits import fit_digest

    pairs: list[tuple[Any, Any]] = [
        (lambda x: x + 1, lambda x: x * 1),
        (lambda x: x in (1, 2), lambda x: x in (3, 4)),
        (lambda x: [y + x for y in x], lambda x: [y - x for y in x]),
    ]
    for one, other in pairs:
        assert fit_digest(one) != fit_digest(other)
        assert fit_digest(one) == fit_digest(one)
