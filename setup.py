"""Compiles the kernels, which are ordinary Python files, to C extensions by Cython.

On x86-64 they are compiled twice: for every such processor, and for those with AVX2 and FMA. Each
build has a folder of its own, and `keyhole.core.kernels` takes one when it is imported. Where
nothing can be compiled, the Python files are installed alone, and do the same more slowly.
"""

import copy
import os
import runpy
import sys
import sysconfig
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, CompileError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# What has to be compiled, and how a checkout knows that it was.
OURS = runpy.run_path("src/keyhole/core/kernels/rebuilding.py")
COMPILED, STAMP, SUFFIX = OURS["COMPILED"], OURS["STAMP"], OURS["SUFFIX"]

DIRECTIVES = {
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "infer_types": True,
    "language_level": 3,
    "embedsignature": True,
}

# Sums may be reordered and multiply-adds fused, which is what lets a dot product use vector
# instructions. Nothing may assume that NaN or infinity never come: their comparisons stay IEEE's.
GCC = [
    "-O3",
    "-fassociative-math",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-ffp-contract=fast",
    # Drop Python's own -g, unless CFLAGS is set.
    *([] if "CFLAGS" in os.environ else ["-g0"]),
]
if "gcc" in os.environ.get("CC", sysconfig.get_config_var("CC") or ""):
    # gcc takes two steps of a product of matrices at a time, for which registers are too few: that
    # costs a tenth of the time. Other compilers do not know the option.
    GCC.append("-fno-loop-unroll-and-jam")
# Microsoft's compiler reorders sums only if it may also assume that there is no NaN.
MSVC = ["/O2", "/fp:contract"]


def builds() -> dict[str, list[str]]:
    """Return the compiler options of each build."""
    windows = sys.platform == "win32"
    options = MSVC if windows else GCC
    if not sysconfig.get_platform().endswith(("x86_64", "amd64")):
        return {"baseline": options}
    faster = ["/arch:AVX2"] if windows else ["-mavx2", "-mfma"]
    return {"baseline": options, "avx2": options + faster}


def translated() -> list[Extension]:
    """Return every kernel as C, translated anew if its sources, not just their times, changed."""
    kernels = []
    for source in OURS["sources"]():
        made_from = OURS["digest"]([source], Path("setup.py")) + Cython.__version__
        record = Path("build", "c", source).with_suffix(".sha256")
        changed = not record.exists() or record.read_text() != made_from
        record.unlink(missing_ok=True)
        kernels += cythonize(
            [Extension(f"keyhole.core.kernels.{source.stem}", [str(source)])],
            build_dir="build/c",
            compiler_directives=DIRECTIVES,
            force=changed,
            quiet=True,
        )
        record.write_text(made_from)
    return kernels


def extensions() -> list[Extension]:
    """Return every kernel in every build, all of them from one translation to C."""
    kernels = translated()
    return [
        Extension(
            f"keyhole.core.kernels.compiled.{build}.{kernel.name.rpartition('.')[2]}",
            kernel.sources,
            extra_compile_args=options,
            optional=True,
        )
        for build, options in builds().items()
        for kernel in kernels
    ]


class BuildKernels(build_ext):
    """Compiles several kernels at a time; a build of which a part fails is left out as a whole."""

    def finalize_options(self) -> None:
        """Use all processors, unless told how many."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()
        self.failed: set[str] = set()

    def run(self) -> None:
        """Compile; in a checkout, only if no other process has done so meanwhile."""
        if not self.inplace:
            super().run()
            return
        now = OURS["digest"](OURS["sources"](), Path("setup.py"))
        whole = all(Path(self.get_ext_fullpath(each.name)).exists() for each in self.extensions)
        if whole and not self.force and STAMP.exists() and STAMP.read_text() == now:
            return
        COMPILED.mkdir(exist_ok=True)
        STAMP.unlink(missing_ok=True)
        super().run()
        STAMP.write_text(now)

    def build_extension(self, ext: Extension) -> None:
        """Compile a kernel, in a folder for each build: their object files have the same names."""
        own, build = copy.copy(self), ext.name.split(".")[-2]
        own.build_temp = os.path.join(self.build_temp, build)
        try:
            build_ext.build_extension(own, ext)
        except (BaseError, CCompilerError, CompileError):
            self.failed.add(build)
            raise

    def build_extensions(self) -> None:
        """Compile all, and remove what must not be installed: failed builds and old kernels."""
        super().build_extensions()
        made = [each for each in self.extensions if each.name.split(".")[-2] not in self.failed]
        kept = {Path(self.get_ext_fullpath(each.name)) for each in made}
        for file in Path(self.build_lib, "keyhole", "core", "kernels", "compiled").glob("*/*"):
            if file not in kept:
                file.unlink()

    def copy_extensions_to_source(self) -> None:
        """Replace the compiled files of the checkout."""
        for file in COMPILED.glob(f"*/*{SUFFIX}"):
            file.unlink()
        for build in builds():
            (COMPILED / build).mkdir(exist_ok=True)
        super().copy_extensions_to_source()


# Processes that start together must not compile together. The lock is held until this one ends.
Path("build").mkdir(exist_ok=True)
lock = open("build/lock", "w")  # noqa: SIM115
if fcntl is not None:
    fcntl.flock(lock, fcntl.LOCK_EX)

setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
