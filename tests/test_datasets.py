"""Data sets: tables, files, and a download from a server that answers as OpenML does."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import _openml
from typer.testing import CliRunner

import keyhole as kh
from keyhole.cli import app
from keyhole.datasets import CATALOGUE, download

PUBLIC = [name for name, source in CATALOGUE.items() if source.openml is not None]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("KEYHOLE_DATA", raising=False)
    return tmp_path / "home" / "keyhole"


# -- tables ---------------------------------------------------------------------------------------


def test_preparing_by_hand() -> None:
    """1, 2, 3 and a glitch, clipped at the 1/6 and 5/6 quantiles: 1.5, 2, 3, and 51.5."""
    data = kh.Dataset(features=[[1.0], [2.0], [3.0], [100.0]], labels=[0, 0, 1, 1])
    x = data.prepared(clip=1 / 6).features[:, 0]
    raw = np.array([1.5, 2.0, 3.0, 51.5])
    np.testing.assert_allclose(x, (raw - raw.mean()) / raw.std())


def test_a_constant_feature_becomes_zero() -> None:
    data = kh.Dataset(features=[[0.1, 1.0], [0.1, 2.0], [0.1, 5.0]], labels=[0, 0, 1])
    assert data.prepared().features[:, 0].tolist() == [0.0, 0.0, 0.0]


def test_the_checksum_is_of_the_content() -> None:
    def data(x: Any, labels: Any = ("a", "b")) -> kh.Dataset:
        return kh.Dataset(features=x, labels=labels)

    base = data([[0.1, 0.0], [2.0, 3.0]])
    assert data([[0.1 + 1e-17, -0.0], [2.0, 3.0]]).sha256 == base.sha256
    for other in (
        data([[0.1001, 0.0], [2.0, 3.0]]),
        data([[2.0, 3.0], [0.1, 0.0]]),
        data([[0.1, 0.0], [2.0, 3.0]], ["b", "a"]),
        data([[0.1, 0.0], [2.0, 3.0]], ["a", "c"]),
    ):
        assert other.sha256 != base.sha256


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": [1.0, 2.0]}, "must be a table"),
        ({"features": [[np.nan], [1.0]]}, "finite"),
        ({"labels": [0, 1, 1]}, "one for each of 2 rows"),
        ({"labels": [0, 0]}, "two classes or more"),
        ({"labels": [0.0, np.nan]}, "missing"),
        ({"labels": np.array([None, "a"], dtype=object)}, "none missing"),
        ({"labels": [0.5, 1.25]}, "labels must be classes"),
        ({"feature_names": ("a", "b")}, "must be 1 names"),
    ],
)
def test_nonsense_tables(settings: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"features": [[1.0], [2.0]], "labels": [0, 1]}
    with pytest.raises(kh.InvalidValue, match=message):
        kh.Dataset(**{**usual, **settings})


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_data_set_is_what_it_must_be(name: str, data_dir: Path) -> None:
    source = CATALOGUE[name]
    data = kh.datasets.load(name, data_dir=data_dir)
    assert data.features.shape == (source.n_rows, source.n_features)
    assert data.counts == source.counts
    assert "lineNo" not in data.feature_names
    x = data.prepared().features
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=1e-9)
    # DS of the cardiotocograms is 0 in all but 7 rows: clipped, it is constant.
    constant = [
        name for name, spread in zip(data.feature_names, x.std(axis=0), strict=True) if spread < 0.5
    ]
    assert constant == (["DS"] if name == "cardiotocography" else [])
    varied = [name not in constant for name in data.feature_names]
    np.testing.assert_allclose(x.std(axis=0)[varied], 1.0)


def test_glitches_are_clipped(data_dir: Path) -> None:
    """Four rows of the EEG hold sensor glitches: standardised as it is, the rest is flat."""
    eeg = kh.datasets.load("eeg-eye-state", data_dir=data_dir)
    assert np.abs(eeg.prepared(clip=0.0).features).max() > 100
    assert np.abs(eeg.prepared().features).max() < 10


def test_a_folder_by_environment(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYHOLE_DATA", str(data_dir))
    assert kh.datasets.load("eeg-eye-state").features.shape == (14_980, 14)
    monkeypatch.setenv("KEYHOLE_DATA", str(data_dir / "nowhere"))
    with pytest.raises(kh.FileError, match="KEYHOLE_DATA must be a folder"):
        kh.datasets.load("eeg-eye-state")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.iloc[:-1], "2,125 rows x 21 features, not 2,126 x 21"),
        (lambda frame: frame.drop(columns="LB"), "2,126 rows x 20 features"),
        (lambda frame: frame.assign(NSP=frame.NSP.replace(3, 2)), "class counts"),
        (lambda frame: frame.assign(LB=frame.LB + 1e-3), "checksum"),
        (lambda frame: frame.assign(LB="high"), "column 'LB' must be numbers"),
        (lambda frame: frame.assign(AC=frame.AC.mask(frame.AC == 0)), "column 'AC' lacks"),
        (lambda frame: frame.rename(columns={"NSP": "label"}), "no column of labels 'NSP'"),
        (lambda frame: frame.iloc[:0], "no rows"),
        (lambda frame: frame[frame.NSP == 1], r"1,655 rows\): labels must be of two classes"),
    ],
)
def test_a_wrong_file_is_told_from_the_right_one(
    change: Any, message: str, data_dir: Path, tmp_path: Path
) -> None:
    frame = pd.read_csv(data_dir / "cardiotocography.csv")
    change(frame).to_csv(tmp_path / "cardiotocography.csv", index=False)
    with pytest.raises(kh.FileError, match=message):
        kh.datasets.load("cardiotocography", data_dir=tmp_path)


def test_a_file_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("age,state,weight\n30, ill,70.5\n41,well,62\n29,ill,80\n")
    data = kh.datasets.load(str(path), label="state")
    assert data.classes == ("ill", "well")
    assert data.feature_names == ("age", "weight")
    assert data.features.tolist() == [[30, 70.5], [41, 62], [29, 80]]
    with pytest.raises(kh.FileError, match="'state' must be numbers"):
        kh.datasets.load(str(path))
    with pytest.raises(kh.FileError, match="there is no file"):
        kh.datasets.load(str(tmp_path / "none.csv"))
    path.write_text('a,b\n"1,2\n')
    with pytest.raises(kh.FileError, match="cannot be read as CSV"):
        kh.datasets.load(str(path))
    path.write_bytes(b"\xff\xfe\x00a,b\n1,2\n")
    with pytest.raises(kh.FileError, match="cannot be read as CSV"):
        kh.datasets.load(str(path))
    with pytest.raises(kh.InvalidValue, match=r"no data set 'wein'.*wine"):
        kh.datasets.load("wein")
    with pytest.raises(kh.InvalidValue, match="label is for files of your own"):
        kh.datasets.load("wine", label="x")


# -- the download ---------------------------------------------------------------------------------


def arff(name: str, data_dir: Path) -> tuple[str, str]:
    """A data set as OpenML has it, and the name of its label."""
    source = CATALOGUE[name]
    frame = pd.read_csv(data_dir / source.file, dtype=str)
    label = source.label
    if name == "cardiotocography":
        # Recordings of one second: counts are rates. What is not used is there all the same.
        order = ("begin", "end", "LBE", "LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV",
                 "DL", "DS", "DP", "DR", "Width", "Min", "Max", "Nmax", "Nzeros", "Mode", "Mean",
                 "Median", "Variance", "Tendency", *"ABCDEFGHIJ")  # fmt: skip
        extra = frame.assign(
            begin="1", end="2", LBE="0", DR="0", **dict.fromkeys("ABCDEFGHIJ", "0")
        )
        columns = {f"V{i}": extra[column] for i, column in enumerate(order, start=1)}
        frame, label = pd.DataFrame({**columns, "Class": frame["NSP"]}), "Class"
    classes = ",".join(sorted(frame[label].unique()))
    kinds = dict.fromkeys(frame.columns, "NUMERIC") | {label: f"{{{classes}}}"}
    head = "\n".join(f"@ATTRIBUTE {column} {kind}" for column, kind in kinds.items())
    body = frame.to_csv(index=False, header=False)
    return f"@RELATION {name}\n{head}\n@DATA\n{body}", label


class OpenML:
    """A server that answers for one data set, and can be told to misbehave."""

    def __init__(self, name: str, data_dir: Path) -> None:
        self.text, self.label = arff(name, data_dir)
        self.columns = [
            line.split()[1] for line in self.text.splitlines() if line.startswith("@ATTRIBUTE")
        ]
        self.name, self.requests = name, list[str]()
        self.cuts = 0  # how many downloads are still to be cut in the middle
        self.md5 = hashlib.md5(self.text.encode(), usedforsecurity=False).hexdigest()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                content = outer.answer(self.path)
                self.send_response(200)
                self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if "download" in self.path and outer.cuts:
                    outer.cuts -= 1
                    self.wfile.write(content[: len(content) // 2])
                    self.close_connection = True
                else:
                    self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> bytes:
        if "download" in path:
            return gzip.compress(self.text.encode())
        number = CATALOGUE[self.name].openml
        answers: dict[str, Any] = {
            f"/data/{number}": {
                "data_set_description": {
                    "id": str(number),
                    "name": self.name,
                    "version": "1",
                    "description": "as published",
                    "format": "ARFF",
                    "status": "active",
                    "file_id": "77",
                    "url": f"{self.address}/data/v1/download/77/{self.name}.arff",
                    "default_target_attribute": self.label,
                    "md5_checksum": self.md5,
                    "processing_date": "2020-01-01",
                }
            },
            f"/data/features/{number}": {
                "data_features": {
                    "feature": [
                        {
                            "index": str(i),
                            "name": column,
                            "data_type": "nominal" if column == self.label else "numeric",
                            "is_target": str(column == self.label).lower(),
                            # OpenML's answer for a number of the row, which is then no feature.
                            "is_ignore": "false",
                            "number_of_missing_values": "0",
                            "is_row_identifier": str(column == "lineNo").lower(),
                        }
                        for i, column in enumerate(self.columns)
                    ]
                }
            },
            f"/data/qualities/{number}": {
                "data_qualities": {
                    "quality": [
                        {"name": "NumberOfInstances", "value": str(CATALOGUE[self.name].n_rows)}
                    ]
                }
            },
        }
        return gzip.compress(json.dumps(answers[path]).encode())

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for template, path in {
            "_DATA_INFO": "/data/{}",
            "_DATA_FEATURES": "/data/features/{}",
            "_DATA_QUALITIES": "/data/qualities/{}",
        }.items():
            assert hasattr(_openml, template)
            monkeypatch.setattr(_openml, template, self.address + path)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def openml(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenML]:
    server = OpenML("cardiotocography", data_dir)
    server.patch(monkeypatch)
    yield server
    server.close()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_download(
    name: str, data_dir: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what the files are, is kept, and is not downloaded again."""
    server = OpenML(name, data_dir)
    server.patch(monkeypatch)
    data = kh.datasets.load(name)
    assert data.sha256 == kh.datasets.load(name, data_dir=data_dir).sha256
    assert (own_cache / CATALOGUE[name].file).exists()
    requests = len(server.requests)
    assert requests >= 3
    server.close()
    again = kh.datasets.load(name)
    assert len(server.requests) == requests
    assert again.sha256 == data.sha256
    assert again.feature_names == data.feature_names
    assert kh.datasets.fetch(name).sha256 == data.sha256


@pytest.mark.usefixtures("openml")
def test_the_command_fetches_and_then_finds_it(own_cache: Path) -> None:
    fetched = CliRunner().invoke(app, ["data", "fetch", "cardiotocography"])
    assert fetched.exit_code == 0, fetched.output
    assert (own_cache / "cardiotocography.csv").exists()
    checked = CliRunner().invoke(app, ["data", "check", "cardiotocography"])
    assert checked.exit_code == 0
    assert "right" in checked.stdout


def test_a_download_that_is_cut_is_tried_again(openml: OpenML) -> None:
    openml.cuts = 1
    assert kh.datasets.load("cardiotocography").features.shape == (2126, 21)
    assert sum("download" in path for path in openml.requests) == 2


def test_a_download_that_is_always_cut_leaves_nothing_behind(
    openml: OpenML, own_cache: Path
) -> None:
    openml.cuts = 100
    with pytest.raises(kh.DataUnavailable, match="into a folder"):
        kh.datasets.load("cardiotocography")
    assert not own_cache.exists()
    openml.cuts = 0
    assert kh.datasets.load("cardiotocography").features.shape == (2126, 21)


def test_a_wrong_checksum_of_openmls(openml: OpenML, own_cache: Path) -> None:
    openml.md5 = "0" * 32
    with pytest.raises(kh.DataUnavailable, match="could not be downloaded"):
        kh.datasets.fetch("cardiotocography")
    assert not own_cache.exists()


def test_content_that_is_not_the_published_one(openml: OpenML, own_cache: Path) -> None:
    """OpenML's own checksum is right, ours is not."""
    openml.text = openml.text.replace(",126,", ",127,", 1)
    openml.md5 = hashlib.md5(openml.text.encode(), usedforsecurity=False).hexdigest()
    with pytest.raises(kh.FileError, match="checksum of the content"):
        kh.datasets.fetch("cardiotocography")
    assert not own_cache.exists()


@pytest.mark.usefixtures("openml")
def test_a_damaged_cache_says_so_and_can_be_fetched_again(own_cache: Path) -> None:
    kh.datasets.fetch("cardiotocography")
    path = own_cache / "cardiotocography.csv"
    path.write_text(path.read_text()[:-1000])
    with pytest.raises(kh.FileError, match=r"cardiotocography\.csv: column 'Min' lacks 1"):
        kh.datasets.load("cardiotocography")
    assert kh.datasets.fetch("cardiotocography", again=True).features.shape == (2126, 21)
    assert kh.datasets.load("cardiotocography").features.shape == (2126, 21)


def test_without_a_network_the_message_has_two_ways_out(
    openml: OpenML, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    openml.close()
    with pytest.raises(kh.DataUnavailable) as caught:
        kh.datasets.load("cardiotocography")
    for words in ("cardiotocography.csv", "--data-dir", "keyhole data fetch cardiotocography"):
        assert words in str(caught.value)


def test_a_server_that_says_nothing_is_given_up(
    openml: OpenML, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PATIENCE", 0.2)
    monkeypatch.setattr("time.sleep", lambda _: None)
    waiting = threading.Event()
    monkeypatch.setattr(openml, "answer", lambda _: waiting.wait(30) and b"")
    with pytest.raises(kh.DataUnavailable, match="timed out"):
        kh.datasets.load("cardiotocography")
    waiting.set()


def test_what_cannot_be_fetched() -> None:
    with pytest.raises(kh.InvalidValue, match="nothing to fetch"):
        kh.datasets.fetch("wine")
    with pytest.raises(kh.InvalidValue, match="no data set"):
        kh.datasets.fetch("iris")
