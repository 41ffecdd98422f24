"""How kernels are compiled and found: a small one in a checkout of its own, built and changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = """
from __future__ import annotations

import cython


@cython.ccall
def answer(x: cython.long) -> cython.long:
    return x + 1
"""
# As in `keyhole.core.kernels`, without its kernels.
PACKAGE = """
from keyhole.core.kernels import builds, rebuilding

BUILD = builds.take()
if BUILD != builds.UNCOMPILED:
    __path__.insert(0, str(rebuilding.COMPILED / BUILD))

from keyhole.core.kernels.small import answer
"""
SAY = "from keyhole.core import kernels; print(kernels.BUILD, kernels.answer(41))"


class Checkout:
    """The parts of this repository that build kernels, and one kernel that is quick to compile."""

    def __init__(self, root: Path) -> None:
        self.root, self.kernels = root, root / "src" / "keyhole" / "core" / "kernels"
        self.kernels.mkdir(parents=True)
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, root / name)
        package = Path("src", "keyhole")
        for name in ("errors.py", "core/kernels/builds.py", "core/kernels/rebuilding.py"):
            shutil.copy(ROOT / package / name, root / package / name)
        (root / package / "__init__.py").write_text('__version__ = "0"\n')
        (root / package / "core" / "__init__.py").write_text("")
        (self.kernels / "__init__.py").write_text(PACKAGE)
        self.kernel = self.kernels / "small.py"
        self.kernel.write_text(KERNEL)

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """Import the kernel in a new process, which says its build and what it computes."""
        inherited = {name: value for name, value in os.environ.items() if name != "KEYHOLE_BUILD"}
        return subprocess.Popen(
            [sys.executable, "-c", SAY],
            env={**inherited, "PYTHONPATH": str(self.root / "src"), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self, **environment: str) -> tuple[str, str]:
        """Return what such a process prints, and its complaints."""
        stdout, stderr = self.start(**environment).communicate(timeout=120)
        return stdout.strip(), stderr

    def change(self, before: str, after: str) -> None:
        """Change the kernel, and leave its time as it was: an archive or a copy may do that."""
        then = self.kernel.stat()
        self.kernel.write_text(self.kernel.read_text().replace(before, after))
        os.utime(self.kernel, ns=(then.st_atime_ns, then.st_mtime_ns))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose kernel was compiled by the first import."""
    checkout = Checkout(tmp_path_factory.mktemp("built") / "checkout")
    said, complaint = checkout.says()
    assert said in ("avx2 42", "baseline 42"), complaint
    assert complaint == "keyhole: compiling kernels that changed\n"
    return checkout.root


@pytest.fixture
def checkout(built: Path, tmp_path: Path) -> Checkout:
    """A copy of it."""
    copy = object.__new__(Checkout)
    copy.root = tmp_path / "checkout"
    shutil.copytree(built, copy.root)
    copy.kernels = copy.root / "src" / "keyhole" / "core" / "kernels"
    copy.kernel = copy.kernels / "small.py"
    return copy


def test_what_is_compiled_is_used_in_silence(checkout: Checkout) -> None:
    os.utime(checkout.kernel)  # a newer time alone changes nothing
    for build in ("baseline", "python"):
        assert checkout.says(KEYHOLE_BUILD=build) == (f"{build} 42", "")


def test_a_changed_kernel_is_compiled_anew_and_once(checkout: Checkout) -> None:
    """Two processes that start together wait for each other."""
    checkout.change("x + 1", "x + 2")
    both = [checkout.start() for _ in range(2)]
    for child in both:
        stdout, stderr = child.communicate(timeout=120)
        assert stdout.split()[1:] == ["43"], stderr
        assert stderr in ("", "keyhole: compiling kernels that changed\n")
    assert checkout.says(KEYHOLE_BUILD="baseline") == ("baseline 43", "")
    checkout.change("x + 2", "x + 1")  # going back is a change too
    assert checkout.says()[0].endswith(" 42")


def test_a_kernel_that_does_not_compile_is_an_error(checkout: Checkout) -> None:
    checkout.change("return x + 1", "return unknown_name[")
    said, complaint = checkout.says()
    assert said == ""
    assert "small.py:10" in complaint
    assert "pip install --editable" in complaint


def test_without_a_compiler_it_is_slow_and_right_and_says_so(checkout: Checkout) -> None:
    checkout.change("x + 1", "x + 3")
    for _ in range(2):  # the second does not try again
        said, complaint = checkout.says(CC="/bin/false")
        assert said == "python 44"
        assert complaint.count("KeyholeWarning: Keyhole's kernels are not compiled") == 1
        assert "install a C compiler" in complaint
    assert "compiling" not in complaint
    assert checkout.says(KEYHOLE_BUILD="python") == ("python 44", "")
    assert "here it must be python" in checkout.says(KEYHOLE_BUILD="baseline")[1]


def test_a_kernel_that_went_away_is_not_found_compiled(checkout: Checkout) -> None:
    (checkout.kernels / "other.py").write_text(KERNEL)
    checkout.kernel.unlink()
    package = checkout.kernels / "__init__.py"
    package.write_text(PACKAGE.replace("small", "other"))
    assert checkout.says()[0].endswith(" 42")
    assert {path.name.partition(".")[0] for path in checkout.kernels.glob("compiled/*/*")} == {
        "other"
    }


def test_an_installed_package_is_never_rebuilt(checkout: Checkout) -> None:
    checkout.change("x + 1", "x + 2")
    (checkout.root / "pyproject.toml").unlink()
    assert checkout.says(KEYHOLE_BUILD="baseline") == ("baseline 42", "")


def test_a_build_that_does_not_exist_is_an_error(checkout: Checkout) -> None:
    complaint = checkout.says(KEYHOLE_BUILD="sse9")[1]
    assert "InvalidValue: KEYHOLE_BUILD must be avx2, baseline or python, got 'sse9'" in complaint
