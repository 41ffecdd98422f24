"""Bandits on disk: whole or not at all, and never by pickle."""

import errno
import io
import json
import os
import pickle
import resource
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import kernels
from keyhole.online import storage


@pytest.fixture
def bandit() -> kh.Bandit:
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A", 7], dim=3, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        bandit.learn(bandit.choose(rng.standard_normal(3)), float(rng.standard_normal()))
    return bandit


@pytest.fixture
def path(bandit: kh.Bandit, tmp_path: Path) -> Path:
    bandit.save(tmp_path / "bandit.npz")
    return tmp_path / "bandit.npz"


def edited(path: Path, header: dict[str, Any] | None = None, **arrays: Any) -> Path:
    """The same file with parts of it replaced."""
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    old = json.loads(str(parts["header"]))
    parts["header"] = np.array(json.dumps({**old, **(header or {})}))
    parts.update(arrays)
    np.savez(path, **{name: part for name, part in parts.items() if part is not None})
    return path


def test_a_file_brings_back_all_of_it(bandit: kh.Bandit, path: Path) -> None:
    again = kh.Bandit.load(path)
    assert again.arms == ("A", 7)
    assert again.policy == bandit.policy
    assert again.counts == bandit.counts
    assert again.probabilities is True


def test_a_file_says_what_wrote_it(path: Path) -> None:
    written_by = storage.read(path)[0]["written_by"]
    assert written_by == {"keyhole": kh.__version__, "build": kernels.BUILD}
    written_by = {"keyhole": "9.9", "build": "of another machine"}
    again = kh.Bandit.load(edited(path, {"written_by": written_by}))
    assert sum(again.counts.values()) == 20
    with pytest.warns(kh.KeyholeWarning, match="'of another machine' of the kernels"):
        kh.Bandit.load(path, resume=True)


def test_saving_again_replaces_the_file(bandit: kh.Bandit, path: Path) -> None:
    bandit.learn(bandit.choose(np.ones(3)), 1.0)
    bandit.save(str(path))
    assert kh.Bandit.load(path).counts == bandit.counts
    assert os.listdir(path.parent) == ["bandit.npz"]


def test_a_crash_in_the_middle_leaves_the_old_file(
    bandit: kh.Bandit, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def crash(file: Any, **_: Any) -> None:
        file.write(b"half of it")
        raise KeyboardInterrupt

    bandit.learn(bandit.choose(np.ones(3)), 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", crash)
        with pytest.raises(KeyboardInterrupt):
            bandit.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["bandit.npz"]


def test_the_new_file_is_whole_before_it_takes_its_place(
    bandit: kh.Bandit, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the moment of replacement, both the old and the new file can be loaded."""
    seen: list[dict[str | int, int]] = []
    replace = os.replace

    def watch(source: str, target: str) -> None:
        seen.extend(kh.Bandit.load(each).counts for each in (source, target))
        replace(source, target)

    bandit.learn(bandit.choose(np.ones(3)), 1.0)
    monkeypatch.setattr(os, "replace", watch)
    bandit.save(path)
    assert [sum(pulls.values()) for pulls in seen] == [21, 20]


def test_a_missing_folder_or_file_is_an_os_error(bandit: kh.Bandit, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bandit.save(tmp_path / "nowhere" / "bandit.npz")
    with pytest.raises(FileNotFoundError):
        kh.Bandit.load(tmp_path / "nothing.npz")


def test_every_truncation_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for size in [0, 1, 10, len(whole) // 3, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(kh.FileError):
            kh.Bandit.load(path)


def test_a_flipped_bit_in_the_data_is_noticed(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    at = whole.index(b"matrices.npy") + 200
    whole[at] ^= 1
    path.write_bytes(whole)
    with pytest.raises(kh.FileError, match=r"damaged|CRC"):
        kh.Bandit.load(path)


def test_any_flipped_bit_is_noticed_or_harmless(bandit: kh.Bandit, path: Path) -> None:
    """A file that is not refused, for a bit that nobody reads, is the same bandit."""
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for place in rng.choice(len(whole) * 8, size=300, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        try:
            again = kh.Bandit.load(path)
        except kh.FileError:
            continue
        for name, array in bandit.posterior.state._asdict().items():
            np.testing.assert_array_equal(array, getattr(again.posterior.state, name))


def test_foreign_files(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are not the arms you are looking for")
    with pytest.raises(kh.FileError, match="not a whole npz file"):
        kh.Bandit.load(text)
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(kh.FileError, match="not a saved bandit"):
        kh.Bandit.load(tmp_path / "other.npz")
    np.savez(tmp_path / "list.npz", header=np.array("[1]"))
    with pytest.raises(kh.FileError, match="not a saved bandit"):
        kh.Bandit.load(tmp_path / "list.npz")
    np.savez(tmp_path / "junk.npz", header=np.array("{"))
    with pytest.raises(kh.FileError, match="header"):
        kh.Bandit.load(tmp_path / "junk.npz")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(kh.FileError):
        kh.Bandit.load(tmp_path / "zip.npz")


def test_pickles_are_never_opened(path: Path) -> None:
    opened: list[int] = []

    class Trap:
        def __reduce__(self) -> Any:
            return opened.append, (1,)

    edited(path, moment=np.array([Trap()], dtype=object))
    opened.clear()
    with pytest.raises(kh.FileError):
        kh.Bandit.load(path)
    assert opened == []


def test_newer_and_nameless_versions(path: Path) -> None:
    for version in (storage.VERSION + 1, 0, "1", None):
        with pytest.raises(kh.FileError, match="version"):
            kh.Bandit.load(edited(path, {"version": version}))
    with pytest.raises(kh.FileError, match="not a saved bandit"):
        kh.Bandit.load(edited(path, {"format": "something else", "version": 1}))


@pytest.mark.parametrize(
    "header",
    [
        {"arms": ["A"]},
        {"arms": ["A", "A"]},
        {"arms": 5},
        {"arms": ["A", None]},
        {"policy": {"name": "ThompsonSampling", "settings": {"v": -1}}},
        {"policy": {"name": "ThompsonSampling", "settings": {"w": 1}}},
        {"policy": {"name": "__doc__", "settings": {}}},
        {"policy": {"name": "Policy", "settings": {}}},
        {"policy": "ThompsonSampling"},
        {"random": {"bit_generator": "MT19937"}},
        {"random": {}},
        {"random": None},
    ],
)
def test_a_header_that_makes_no_sense(path: Path, header: dict[str, Any]) -> None:
    with pytest.raises(kh.FileError):
        kh.Bandit.load(edited(path, header))


@pytest.mark.parametrize(
    "arrays",
    [
        {"moment": None},
        {"moment": np.zeros((2, 4))},
        {"moment": np.zeros(6)},
        {"matrices": np.zeros((2, 4, 3), dtype=np.float32)},
        {"matrices": np.full((2, 4, 3), np.nan)},
        {"n": np.zeros((3,))},
        {"n": np.array([-3.0, 1.0])},
        {"n": np.array([3.5, 1.0])},
        {"matrices": np.zeros((2, 4, 3))},
        {"bound": np.array([-1.0, 1.0])},
        {"prior": np.array([2.0, 2.0])},
        {"mean": np.array(1.0)},
    ],
)
def test_arrays_that_make_no_sense(path: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises(kh.FileError):
        kh.Bandit.load(edited(path, **arrays))


# -- sums and caches that do not fit together ------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("matrices", lambda m: m * 1.5),  # P is no longer the inverse of B
        ("matrices", lambda m: np.where(np.arange(3) == 0, m * -1.0, m)),  # B is not positive
        ("mean", lambda m: m + 1.0),
        ("moment", lambda m: m * 2.0),
        ("residual", lambda r: r - 1e9),
        ("penalty", lambda p: p - 1e9),
    ],
)
def test_caches_that_do_not_follow_from_the_sums(path: Path, name: str, change: Any) -> None:
    with np.load(path) as file:
        array = file[name]
    with pytest.raises(kh.FileError):
        kh.Bandit.load(edited(path, **{name: change(array)}))


def test_large_scales_and_drift_are_no_damage(tmp_path: Path) -> None:
    """What a bandit comes to by itself loads: collinear features of a large scale, many steps."""
    rng = np.random.default_rng(1)
    for scale in (1e-8, 1.0, 1e6):
        bandit = kh.Bandit(kh.ThompsonSampling(), arms=2, dim=4, seed=1)
        base = rng.standard_normal((6000, 1)) * scale
        for y in base + 1e-6 * scale * rng.standard_normal((6000, 4)):
            bandit.learn(bandit.choose(y), float(y[0] / scale))
        bandit.save(tmp_path / "b.npz")
        again = kh.Bandit.load(tmp_path / "b.npz")
        np.testing.assert_array_equal(again.posterior.mean, bandit.posterior.mean)


@pytest.mark.parametrize(
    "header",
    [
        {"lineage": None},
        {"lineage": {"b": [1, -1]}},
        {"lineage": {"b": [1]}},
        {"arms": {"A": 1, "7": 2}},
        {"learned_ids": "x"},
        {"learned_ids": [1]},
        {"columns": ["a"]},
        {"columns": "abc"},
        {"observer": {"intercept": 5}},
        {"observer": {"unknown": True}},
        {"probabilities": 1},
        {"dim": 0},
        {"dim": 10**300},
        {"waiting": ["Z"]},
        {"provisional": ["A"]},
        {"written_by": None},
        {"written_by": "keyhole"},
        {"written_by": {"keyhole": "0.1.0"}},
        {"written_by": {"keyhole": "0.1.0", "build": 2}},
    ],
)
def test_parts_of_a_header_that_make_no_sense(path: Path, header: dict[str, Any]) -> None:
    with pytest.raises(kh.FileError):
        kh.Bandit.load(edited(path, header))


def test_what_load_would_refuse_is_not_saved(bandit: kh.Bandit, path: Path) -> None:
    """An arm of NaN was saved, and then nothing could load it: the good file was gone."""
    before = path.read_bytes()
    bandit._learned.posterior.state.mean[0] = np.nan
    with pytest.raises(kh.FileError, match="mean is not finite"):
        bandit.save(path)
    assert path.read_bytes() == before


def test_deep_json_is_no_recursion_error(path: Path) -> None:
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    parts["header"] = np.array("[" * 100_000)
    np.savez(path, **parts)
    with pytest.raises(kh.FileError, match="header"):
        kh.Bandit.load(path)


@pytest.mark.parametrize("path", [None, 1, True, b"\x00", 3.5])
def test_what_is_no_path(bandit: kh.Bandit, path: Any) -> None:
    with pytest.raises(kh.KeyholeError):
        bandit.save(path)
    with pytest.raises(kh.KeyholeError):
        kh.Bandit.load(path)


# -- paths, open files, bytes ----------------------------------------------------------------------


def is_the_same(one: kh.Bandit, other: kh.Bandit) -> bool:
    pairs = zip(one.posterior.state, other.posterior.state, strict=True)
    return one.arms == other.arms and all(np.array_equal(*pair) for pair in pairs)


def test_to_and_from_bytes_and_open_files(bandit: kh.Bandit, path: Path, tmp_path: Path) -> None:
    content = bandit.to_bytes()
    memory = io.BytesIO(b"something before")
    memory.seek(0, os.SEEK_END)
    bandit.save(memory)
    with open(tmp_path / "open.npz", "wb") as file:
        bandit.save(file)
        assert not file.closed
        # What was saved is there before the file is closed.
        assert is_the_same(kh.Bandit.load(tmp_path / "open.npz"), bandit)
    with open(path, "rb") as file:
        for source in (content, bytearray(content), memoryview(content), memory, file):
            assert is_the_same(kh.Bandit.load(source), bandit)
        assert not file.closed


@pytest.mark.parametrize("kind", ["path", "file", "bytes"])
def test_a_damaged_source_is_named(path: Path, kind: str) -> None:
    edited(path, {"arms": ["A"]})
    with open(path, "rb") as file:
        sources: dict[str, Any] = {"path": path, "file": file, "bytes": path.read_bytes()}
        name = "the given bytes" if kind == "bytes" else str(path)
        with pytest.raises(kh.FileError, match=f"^{name} cannot be loaded: "):
            kh.Bandit.load(sources[kind])


def test_files_that_cannot_be_used_are_refused(bandit: kh.Bandit, tmp_path: Path) -> None:
    place = tmp_path / "x"
    with open(place, "w") as text, open(place, "rb") as readable:
        with pytest.raises(kh.InvalidValue, match=f"text file: open {place} in binary"):
            bandit.save(text)  # type: ignore[arg-type] # on purpose
        with pytest.raises(kh.InvalidValue, match=f"not open to write: {place}"):
            bandit.save(readable)
    with pytest.raises(kh.InvalidValue, match="closed file"):
        bandit.save(readable)
    with open(place, "wb") as writable, pytest.raises(kh.InvalidValue, match="not open to read"):
        kh.Bandit.load(writable)
    read_end, write_end = os.pipe()
    refused = pytest.raises(kh.InvalidValue, match="cannot seek: give its bytes")
    with open(read_end, "rb") as pipe, open(write_end, "wb"), refused:
        kh.Bandit.load(pipe)
    assert place.read_bytes() == b""


def test_a_full_disk_is_named(bandit: kh.Bandit, path: Path) -> None:
    """No file may be longer than 1,000 bytes here."""
    old = path.read_bytes()
    other = path.parent / "other.npz"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(kh.FileError, match=f"cannot write {path}: file too large"):
            bandit.save(path)
        refused = pytest.raises(kh.FileError, match=f"cannot write {other}: file too large")
        with open(other, "wb", buffering=0) as file, refused:
            bandit.save(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == old


def test_a_missing_folder_and_a_read_only_place_are_named(
    bandit: kh.Bandit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "nowhere" / "bandit.npz"
    with pytest.raises(kh.FileError, match=f"cannot write {missing}: its folder does not exist"):
        bandit.save(missing)

    def refuse(*_: Any, **__: Any) -> int:  # root may write everywhere
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(kh.FileError, match=f"cannot write {tmp_path / 'b'}: read-only file system"):
        bandit.save(tmp_path / "b")


def test_loading_holds_no_second_copy() -> None:
    """At its peak, loading takes what the bandit then keeps: its arrays, and pending updates."""
    n_arms, dim = 200, 100
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=n_arms, dim=dim, seed=1)
    content = bandit.to_bytes()
    arrays = sum(array.nbytes for array in bandit.posterior.state)
    pending = 2 * 8 * n_arms * kernels.TOGETHER * dim
    tracemalloc.start()
    try:
        again = kh.Bandit.load(content)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert arrays < kept < 1.05 * (arrays + pending)
    assert peak < 1.1 * (arrays + pending)
    assert kernels.is_aligned(again._learned.posterior.core.state.matrices)


def test_a_bandit_does_not_keep_the_memory_of_its_pickle(bandit: kh.Bandit) -> None:
    """Buffers out of band may be writable, and be loaded twice."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(bandit, protocol=5, buffer_callback=buffers.append)
    assert buffers
    shared = [bytearray(each.raw()) for each in buffers]
    one, two = (pickle.loads(text, buffers=shared) for _ in range(2))
    one.learn(one.choose(np.ones(3)), 5.0)
    assert is_the_same(two, bandit)
    assert not is_the_same(one, bandit)


def test_a_dim_beyond_the_file_takes_no_memory(path: Path) -> None:
    """The moments of ten million features would take 800 TB."""
    header = {"dim": 10**7, "observer": {"missing": "predict"}}
    with pytest.raises(kh.FileError, match="smaller than dim=10000000"):
        kh.Bandit.load(edited(path, header))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e130, -1e130])
def test_one_bad_number_is_noticed(path: Path, value: float) -> None:
    with np.load(path) as file:
        moment = file["moment"]
    moment[1, 2] = value
    with pytest.raises(kh.FileError, match=r"moment is not finite|moment holds numbers beyond"):
        kh.Bandit.load(edited(path, moment=moment))
