"""Files: whole or not there, with their permissions, and nothing in them that is trusted."""

import errno
import io
import os
import resource
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole import files
from keyhole.files import read_arrays, replacing, write_arrays

ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "header": np.array("{}")}


def put(path: Any, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- replacing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o664, 0o666])
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_file_keeps_its_permissions(tmp_path: Path, kept: int, umask: int) -> None:
    path = tmp_path / "bandit.npz"
    path.write_bytes(b"old")
    path.chmod(kept)
    before = os.umask(umask)
    try:
        put(path)
        put(tmp_path / "another")
    finally:
        os.umask(before)
    assert mode(path) == kept
    assert mode(tmp_path / "another") == 0o666 & ~umask
    assert path.read_bytes() == b"new"


def test_a_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    """Nor is the one that is about to take its place."""
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with replacing(path) as file:
        file.write(b"new")
        assert [mode(each) for each in tmp_path.iterdir()] == [0o600, 0o600]


def test_only_plain_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place, what in (
        (tmp_path / "pipe", "a named pipe"),
        (tmp_path / "link", "a named pipe"),
        (tmp_path, "a folder"),
        (f"{tmp_path}/new/", "a folder"),
        ("/dev/null", "a device"),
        (tmp_path / "loop", "symbolic links"),
    ):
        for use in (put, read_arrays):
            with pytest.raises(kh.FileError, match=what) as caught:
                use(place)
            assert str(place) in str(caught.value)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "today").symlink_to(tmp_path / "monday")
    put(tmp_path / "today")
    assert (tmp_path / "today").is_symlink()
    assert (tmp_path / "monday").read_bytes() == b"new"


@pytest.mark.parametrize("path", [None, 1, 0, True, b"bytes", 1.5, "", "a\0b", "\ud800", ["x"]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """Above all numbers, which `open` reads as file descriptors, and then closes."""
    bandit = kh.Bandit(kh.Greedy(), arms=2, dim=1)
    uses: list[Any] = [put, bandit.save]
    if not isinstance(path, bytes):  # to readers these are content
        uses += [read_arrays, kh.Bandit.load]
    for use in uses:
        with pytest.raises(kh.InvalidValue, match="path"):
            use(path)
    os.fstat(0), os.fstat(1)  # still open
    with pytest.raises(kh.InvalidValue, match="resume"):
        kh.simulate(
            kh.RandomLinearWorld(n_arms=2, context_dim=1, dim=1),
            kh.Greedy(),
            horizon=2,
            replications=1,
            seed=1,
            resume=path if path is not None else 5,  # type: ignore[arg-type] # on purpose
        )


def test_errors_name_the_path_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(kh.FileError, match="its folder does not exist") as caught:
        put(tmp_path / "nowhere" / "bandit.npz")
    assert str(tmp_path / "nowhere" / "bandit.npz") in str(caught.value)
    assert ".part" not in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_arrays(tmp_path / "nothing.npz")
    (tmp_path / "file").touch()
    with pytest.raises(kh.FileError, match="not a directory"):
        put(tmp_path / "file" / "bandit.npz")
    with pytest.raises(kh.FileError, match="too long"):
        put(tmp_path / ("x" * 300))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, code: int) -> None:
    path = tmp_path / "bandit.npz"
    put(path, b"old")
    with pytest.raises(kh.FileError, match=str(path)) as caught, replacing(path):
        raise OSError(code, os.strerror(code))
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == code
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_really_full_disk(tmp_path: Path) -> None:
    """No file may be longer than 100 kB here: what is buffered fails when it is flushed."""
    path = tmp_path / "bandit.npz"
    put(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(kh.FileError, match=f"cannot write {path}: file too large"):
            put(path, bytes(100_001))
        with pytest.raises(kh.FileError, match=f"cannot write {path}: file too large"):
            write_arrays(path, {"x": np.zeros(10**6)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_the_caller_raises_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), replacing(tmp_path / "download"):
        raise ConnectionResetError(errno.ECONNRESET, "the network is gone")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_synced_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def renamed(*paths: Any) -> None:
        done.append("rename")
        rename(*paths)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    put(tmp_path / "x")
    assert done == ["file", "rename", "folder"]


# -- what killed writers leave --------------------------------------------------------------------

SAVING = """
import sys
import numpy as np
from keyhole.files import write_arrays
x = np.zeros(200_000)
print("ready", flush=True)
while True:
    write_arrays(sys.argv[1], {"x": x})
"""


def test_leftovers_of_killed_writers_go_with_the_next_write(tmp_path: Path) -> None:
    """kill -9 at random moments: at most one part is there at any time, and none at the end."""
    path = tmp_path / "bandit.npz"
    rng, left = np.random.default_rng(1), 0
    for _ in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.02 + 0.05 * rng.random())
        child.kill()
        child.wait()
        child.stdout.close()
        parts = list(tmp_path.glob("*.part"))
        left += len(parts)
        assert len(parts) <= 1
    assert left > 0  # or nothing was tried
    write_arrays(path, ARRAYS)
    assert os.listdir(tmp_path) == ["bandit.npz"]


def test_leftovers_are_found_whatever_their_number(tmp_path: Path) -> None:
    for number in (0, 3, 15):
        (tmp_path / f"x.{number}.part").write_bytes(b"half")
    (tmp_path / "xx.0.part").write_bytes(b"another's")
    (tmp_path / "x.y.part").write_bytes(b"a user's")
    put(tmp_path / "x")
    assert sorted(os.listdir(tmp_path)) == ["x", "x.y.part", "xx.0.part"]
    assert files.is_part(tmp_path / "xx.0.part")
    assert not files.is_part(tmp_path / "x.y.part")


def test_a_live_writers_part_is_left_alone(tmp_path: Path) -> None:
    """In this thread, and in another process: all of them end well, and the last one counts."""
    path = tmp_path / "x"
    code = (
        "import sys\nfrom keyhole.files import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'theirs'); print('writing', flush=True); sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "writing\n"
        with replacing(path) as outer:
            outer.write(b"outer")
            put(path, b"inner")
            assert path.read_bytes() == b"inner"
            assert len(list(tmp_path.glob("*.part"))) == 2
        assert path.read_bytes() == b"outer"
        other.stdin.write("go\n")
        other.stdin.flush()
        assert other.wait() == 0
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["x"]


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    """Eight threads: the file is whole at any time, and nothing is left."""
    path, failed = tmp_path / "x", []
    contents = {bytes([65 + i]) * 50_000 for i in range(8)}

    def work(content: bytes) -> None:
        try:
            for _ in range(20):
                put(path, content)
                assert path.read_bytes() in contents
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert os.listdir(tmp_path) == ["x"]


def test_more_writers_at_a_time_than_numbers(tmp_path: Path) -> None:
    def nested(depth: int) -> None:
        with replacing(tmp_path / "x") as file:
            file.write(b"%d" % depth)
            if depth < 20:
                nested(depth + 1)

    nested(0)
    assert (tmp_path / "x").read_bytes() == b"0"
    assert os.listdir(tmp_path) == ["x"]


def test_where_nothing_can_be_locked_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def unsupported(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    (tmp_path / "x.0.part").write_bytes(b"whose?")
    put(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert (tmp_path / "x.0.part").exists()


# -- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3)),
        np.array(7),
        np.array(3.5),
        np.array("ä text"),
        np.array(["a", "bcd"]),
        np.array([True, False]),
        np.arange(5, dtype=">f8"),
        np.arange(5, dtype=np.int8),
        np.array(b"bytes"),
        np.zeros((2, 1, 1, 3), np.float32),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_there_and_back(tmp_path: Path, array: np.ndarray) -> None:
    write_arrays(tmp_path / "x.npz", {"x": array, "header": np.array("{}")})
    back = read_arrays(tmp_path / "x.npz")
    assert list(back) == ["x", "header"]
    np.testing.assert_array_equal(back["x"], array)
    assert back["x"].dtype == array.dtype.newbyteorder("=")
    assert back["x"].shape == array.shape
    np.testing.assert_array_equal(np.load(tmp_path / "x.npz")["x"], array)


def npy(descr: str = "<f8", shape: str = "(3,)", data: bytes = b"", version: int = 1) -> bytes:
    """An npy member with any header."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return framed(header + b" " * 10 + b"\n", data, version)


def framed(header: bytes, data: bytes = b"", version: int = 1) -> bytes:
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


def archive(path: Path, members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


CRAFTED = {
    "a petabyte": npy(shape="(125000000000000,)"),
    "beyond all bounds": npy(shape="(999999999999999999, 999999999999999999)"),
    "a length of 5,000 digits": npy(shape=f"({'9' * 5000},)"),
    "100 axes": npy(shape="(" + "1, " * 99 + "1)", data=bytes(8)),
    "less than it says": npy(data=bytes(23)),
    "more than it says": npy(data=bytes(25)),
    "below zero": npy(shape="(-1,)", data=bytes(8)),
    "objects": npy(descr="|O8", data=bytes(24)),
    "records": framed(b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }\n"),
    "empty texts": npy(descr="<U0", shape="(999999999999999999,)"),
    "long texts": npy(descr="<U999999999", shape="(1,)"),
    "no such type": npy(descr="<f7", shape="(0,)"),
    "deep": framed(b"(" * 9000 + b"\n"),
    "unclosed": framed(b"{'descr': '''\n"),
    "not a dict": framed(b"[1, 2]\n"),
    "Python 2": framed(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }\n", bytes(8)),
    "a long header": framed(b" " * 70_000 + b"\n", version=2),
    "version 3": npy(version=3, data=bytes(24)),
    "no magic": b"\x94NUMPY" + npy(data=bytes(24))[6:],
    "half a magic": b"\x93NUM",
    "nothing": b"",
    "pickled": b"\x80\x04K\x01.",
    "odd truth": npy(descr="|b1", data=b"\0\1\2"),
    "odd letters": npy(descr="<U1", shape="()", data=b"\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("member", CRAFTED.values(), ids=CRAFTED)
def test_crafted_members_are_refused(tmp_path: Path, member: bytes) -> None:
    """By a FileError, and before any memory is taken."""
    path = archive(tmp_path / "x.npz", {"x.npy": member})
    with pytest.raises(kh.FileError, match=r"x\.npz is not a whole npz file"):
        read_arrays(path)
    with pytest.raises(kh.FileError):
        kh.Bandit.load(path)


def test_the_crafted_members_are_near_misses() -> None:
    """The negative control: with the right length the same members can be read."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("x.npy", npy(data=np.arange(3.0).tobytes()))
        made.writestr("y.npy", npy(version=2, data=np.arange(3.0).tobytes()))
    for array in read_arrays(file).values():
        assert array.tolist() == [0.0, 1.0, 2.0]


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """Two gigabytes of zeros in two megabytes: compressed members are refused as they are."""
    header = npy(shape="(250000000,)")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    small = packer.compress(header + bytes(20 * 10**6)) + packer.flush()
    path = archive(tmp_path / "bomb.npz", {"x.npy": header + bytes(20 * 10**6)}, 8)
    assert path.stat().st_size < len(small) + 1000
    with pytest.raises(kh.FileError, match="compressed"):
        read_arrays(path)
    np.savez_compressed(path, x=np.zeros(3))
    with pytest.raises(kh.FileError, match="compressed"):
        read_arrays(path)


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    """A thousand entries of the table of contents may all point to the same megabyte."""
    path = archive(tmp_path / "x.npz", {"x.npy": npy(shape="(131072,)", data=bytes(2**20))})
    whole = path.read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    start = whole.rindex(b"PK\x01\x02")
    entry = whole[start:end]
    entries = [entry.replace(b"x.npy", b"%c.npy" % (97 + i)) for i in range(20)]
    counts = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 20, 20, 20 * len(entry), start, 0)
    path.write_bytes(whole[:start] + b"".join(entries) + counts)
    with pytest.raises(kh.FileError, match=r"larger than the file|[Oo]verlap"):
        read_arrays(path)


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    member = npy(shape="(0,)")
    path = archive(tmp_path / "x.npz", {f"{i}.npy": member for i in range(1001)})
    with pytest.raises(kh.FileError, match="1,001 members"):
        read_arrays(path)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", npy(data=bytes(24)))
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("x.npy", npy(data=bytes(24)))
    with pytest.raises(kh.FileError, match="same name"):
        read_arrays(path)


def test_an_array_is_read_without_a_second_copy(tmp_path: Path) -> None:
    import tracemalloc

    write_arrays(tmp_path / "x.npz", {"x": np.ones(4 * 2**20)})
    tracemalloc.start()
    try:
        read_arrays(tmp_path / "x.npz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2**20 + 8 * 2**20


def test_any_flipped_bit_or_cut_is_a_file_error_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_arrays(path, {**ARRAYS, "flags": np.array([True, False]), "n": np.arange(3)})
    whole, expected = path.read_bytes(), read_arrays(path)
    rng = np.random.default_rng(3)
    refused = 0
    for place in rng.choice(len(whole) * 8, size=1500, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        try:
            back = read_arrays(bytes(flipped))
        except kh.FileError:
            refused += 1
            continue
        for name, array in back.items():
            np.testing.assert_array_equal(array, expected.get(name, array))
    assert refused > 500
    for size in range(0, len(whole), 37):
        with pytest.raises(kh.FileError):
            read_arrays(whole[:size])


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    # In the background of a shell Ctrl-C is ignored from the start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "x"):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []
