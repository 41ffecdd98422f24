"""Data sets: tables, files, and a download from a server that answers as OpenML does.

The files are small ones of the catalogue's form; `test_paper_data` reads the real ones.
"""

import hashlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import keyhole as kh
from keyhole.cli import app
from keyhole.lab.datasets import CATALOGUE, download
from tests.openml import OpenML

PUBLIC = [name for name, source in CATALOGUE.items() if source.openml is not None]
BUNDLED = [name for name in CATALOGUE if name not in PUBLIC]


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
        ({"labels": [0, 1, 1]}, r"labels must have shape \(2,\), got"),
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


@pytest.mark.parametrize("name", BUNDLED)
def test_every_bundled_table_is_what_it_must_be(name: str) -> None:
    source = CATALOGUE[name]
    data = kh.datasets.load(name)
    assert data.features.shape == (source.n_rows, source.n_features)
    assert data.counts == source.counts
    x = data.prepared().features
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=1e-9)
    constant = x.std(axis=0) < 0.5  # pixels at the border of the digits
    assert constant.sum() == (9 if name == "digits" else 0)
    np.testing.assert_allclose(x.std(axis=0)[~constant], 1.0)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_folder_of_files(name: str, small_data: Path) -> None:
    source = CATALOGUE[name]
    data = kh.datasets.load(name, data_dir=small_data)
    assert data.features.shape == (60, source.n_features)
    assert data.counts == source.counts
    assert "lineNo" not in data.feature_names
    assert source.label not in data.feature_names


def test_glitches_are_clipped() -> None:
    """One glitch among 1,000 numbers: standardised as it is, the rest is flat."""
    x = np.random.default_rng(1).standard_normal((1000, 1))
    x[7] = 1e6
    data = kh.Dataset(features=x, labels=np.arange(1000) % 2)
    assert np.abs(data.prepared(clip=0.0).features).max() > 30
    assert np.abs(data.prepared().features).max() < 10


def test_a_folder_by_environment(small_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYHOLE_DATA", str(small_data))
    assert kh.datasets.load("eeg-eye-state").features.shape == (60, 14)
    monkeypatch.setenv("KEYHOLE_DATA", str(small_data / "nowhere"))
    with pytest.raises(kh.FileError, match="KEYHOLE_DATA must be a folder"):
        kh.datasets.load("eeg-eye-state")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.iloc[:-1], "59 rows x 21 features, not 60 x 21"),
        (lambda frame: frame.drop(columns="LB"), "60 rows x 20 features"),
        (lambda frame: frame.assign(NSP=frame.NSP.replace(3, 2)), "class counts"),
        (lambda frame: frame.assign(LB=frame.LB + 1e-3), "checksum"),
        (lambda frame: frame.assign(LB="high"), "column 'LB' must be numbers"),
        (lambda frame: frame.assign(AC=frame.AC.mask(frame.NSP == 1)), "column 'AC' lacks"),
        (lambda frame: frame.rename(columns={"NSP": "label"}), "no column of labels 'NSP'"),
        (lambda frame: frame.iloc[:0], "no rows"),
        (lambda frame: frame[frame.NSP == 1], r"20 rows\): labels must be of two classes"),
    ],
)
def test_a_wrong_file_is_told_from_the_right_one(
    change: Any, message: str, small_data: Path, tmp_path: Path
) -> None:
    frame = pd.read_csv(small_data / "cardiotocography.csv")
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
    with pytest.raises(kh.InvalidValue, match=r"got 'wein'\. Did you mean wine"):
        kh.datasets.load("wein")
    with pytest.raises(kh.InvalidValue, match="label must be None for"):
        kh.datasets.load("wine", label="x")


def test_a_row_with_a_field_too_many_is_refused(tmp_path: Path) -> None:
    """pandas takes the first field as the name of the row and shifts the others, silently."""
    path = tmp_path / "shifted.csv"
    path.write_text("a,b,class\n1,2,0,9\n3,4,1,9\n")
    with pytest.raises(kh.FileError, match=r"rows have more fields than its header has names"):
        kh.datasets.load(path)
    path.write_text("a,b,class\n1,2,0,\n3,4,1,9\n")
    with pytest.raises(kh.FileError, match="more fields"):
        kh.datasets.load(path)
    path.write_text("a,b,class\n1,2,0,\n3,4,1,\n")  # a comma at the end is no field
    assert kh.datasets.load(path).features.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    path.write_text("a,b,class\n1,2,0\n3,4,1,9\n")
    with pytest.raises(kh.FileError, match=r"cannot be read as CSV.*line 3, saw 4"):
        kh.datasets.load(path)
    path.write_text("a,b,class\n1,2,0\n3,1\n")
    with pytest.raises(kh.FileError, match="column 'class' lacks 1"):
        kh.datasets.load(path)


def test_only_files_of_this_machine_are_read(tmp_path: Path) -> None:
    """pandas would fetch an address, unencrypted and unverified."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a,class\n1,0\n2,1\n")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/table.csv"
        for read in (kh.datasets.load, kh.datasets.read_csv):
            with pytest.raises(kh.InvalidValue, match="download it first"):
                read(address)
        server.shutdown()
    assert asked == []
    mine = tmp_path / "table.csv"
    mine.write_text("a,class\n1,0\n2,1\n")
    with pytest.raises(kh.InvalidValue, match="download it first"):
        kh.datasets.load(mine.as_uri())
    assert kh.datasets.load(mine).counts == {0: 1, 1: 1}
    with pytest.raises(kh.InvalidValue, match="name or the path"):
        kh.datasets.read_csv(1)  # type: ignore[arg-type]


# -- the download ---------------------------------------------------------------------------------


@pytest.fixture
def openml(small_data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenML]:
    server = OpenML("cardiotocography", small_data)
    server.patch(monkeypatch)
    yield server
    server.close()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_download(
    name: str, small_data: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what the files are, is kept, and is not downloaded again."""
    server = OpenML(name, small_data)
    server.patch(monkeypatch)
    data = kh.datasets.load(name)
    assert data.sha256 == kh.datasets.load(name, data_dir=small_data).sha256
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
    assert kh.datasets.load("cardiotocography").features.shape == (60, 21)
    assert sum("download" in path for path in openml.requests) == 2


def test_a_download_that_is_always_cut_leaves_nothing_behind(
    openml: OpenML, own_cache: Path
) -> None:
    openml.cuts = 100
    with pytest.raises(kh.DataUnavailable, match="into a folder"):
        kh.datasets.load("cardiotocography")
    assert not own_cache.exists()
    openml.cuts = 0
    assert kh.datasets.load("cardiotocography").features.shape == (60, 21)


def test_a_wrong_checksum_of_openmls(openml: OpenML, own_cache: Path) -> None:
    openml.md5 = "0" * 32
    with pytest.raises(kh.DataUnavailable, match="could not be downloaded"):
        kh.datasets.fetch("cardiotocography")
    assert not own_cache.exists()


def test_content_that_is_not_the_published_one(openml: OpenML, own_cache: Path) -> None:
    """OpenML's own checksum is right, ours is not."""
    number = openml.text.splitlines()[-1].split(",")[4]
    openml.text = openml.text.replace(number, "9.75")
    openml.md5 = hashlib.md5(openml.text.encode(), usedforsecurity=False).hexdigest()
    with pytest.raises(kh.FileError, match="checksum of the content"):
        kh.datasets.fetch("cardiotocography")
    assert not own_cache.exists()


@pytest.mark.usefixtures("openml")
def test_a_damaged_cache_says_so_and_can_be_fetched_again(own_cache: Path) -> None:
    kh.datasets.fetch("cardiotocography")
    path = own_cache / "cardiotocography.csv"
    path.write_text(path.read_text().rpartition(",")[0])
    with pytest.raises(kh.FileError, match=r"cardiotocography\.csv: column 'NSP' lacks 1"):
        kh.datasets.load("cardiotocography")
    assert kh.datasets.fetch("cardiotocography", again=True).features.shape == (60, 21)
    assert kh.datasets.load("cardiotocography").features.shape == (60, 21)


def test_without_a_network_the_message_has_two_ways_out(openml: OpenML, tmp_path: Path) -> None:
    openml.close()
    start = time.monotonic()
    with pytest.raises(kh.DataUnavailable) as caught:
        kh.datasets.load("cardiotocography", data_dir=tmp_path)
    assert time.monotonic() - start < 1.0  # asked once, and refused at once
    for words in ("(Connection refused)", "--data-dir", "keyhole data fetch cardiotocography",
                  f"there is no {tmp_path / 'cardiotocography.csv'} or "):  # fmt: skip
        assert words in str(caught.value).replace("[Errno 111] ", "")


def test_a_server_that_says_nothing_is_given_up(
    openml: OpenML, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()
    monkeypatch.setattr(openml, "answer", lambda _: waiting.wait(30) and b"")
    start = time.monotonic()
    with pytest.raises(kh.DataUnavailable, match=r"no answer within 0.2 s|timed out"):
        kh.datasets.load("cardiotocography", patience=0.2)
    assert time.monotonic() - start < 2.0
    waiting.set()


def test_a_name_that_takes_long_to_look_up_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that does not answer knows no timeout: the thread that asks is left alone."""
    waiting = threading.Event()

    def slow(*_: Any, **__: Any) -> Any:
        waiting.wait(30)
        raise OSError("no such name")

    monkeypatch.setattr("socket.getaddrinfo", slow)
    with pytest.raises(kh.DataUnavailable, match=r"no answer within 0.2 s"):
        kh.datasets.load("cardiotocography", patience=0.2)
    waiting.set()


def test_a_server_that_falls_silent_in_the_middle_is_given_up(
    openml: OpenML, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PATIENCE", 0.2)
    monkeypatch.setattr("time.sleep", lambda _: None)
    waiting, usual = threading.Event(), openml.answer
    monkeypatch.setattr(
        openml, "answer", lambda path: usual(path) if "1560" in path else waiting.wait(30) and b""
    )
    with pytest.raises(kh.DataUnavailable, match="timed out"):
        kh.datasets.load("cardiotocography")
    waiting.set()


def test_what_cannot_be_fetched() -> None:
    with pytest.raises(kh.InvalidValue, match="need not be fetched"):
        kh.datasets.fetch("wine")
    with pytest.raises(kh.InvalidValue, match="data set must be one of"):
        kh.datasets.fetch("iris")
