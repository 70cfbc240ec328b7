"""Builds the Cython extensions of `ext/`; everything declarative stands in pyproject.toml.

The folders stand at the top of the tree and are installed below the namespace `rowcall`. Cython and mypy look
packages up by folder, so `build/namespace/rowcall` mirrors the installed layout with links.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
NAMESPACE = ROOT / "build" / "namespace"
FOLDERS = ("core", "ext", "service")
HEADERS = Path("ext") / "base"


def link_namespace() -> None:
    package = NAMESPACE / "rowcall"
    package.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        link = package / name
        if not link.is_symlink():
            link.symlink_to(Path("../../..") / name, target_is_directory=True)


def packages() -> list[str]:
    """Every package below the folders, under its installed name."""
    return [
        f"rowcall.{name}{inner}"
        for name in FOLDERS
        for inner in ("", *(f".{package}" for package in find_packages(str(ROOT / name))))
    ]


def flags_file(flags: list[str]) -> str:
    """Return a file with the flags of the compiler, written if they change: the extensions depend on it."""
    path, text = ROOT / "build" / "flags", " ".join(flags)
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return str(path.relative_to(ROOT))


def extensions() -> list[Extension]:
    if os.environ.get("EXTENSIONS") == "0":  # they are built already, in place
        return []
    profile = os.environ.get("PROFILE") == "1"
    # Python's own flags ask for debug information, which is four fifths of a file and nearly half of the time it takes.
    flags = ["-O2", "-g", "-fno-omit-frame-pointer"] if profile else ["-O3", "-g0"]
    sanitize = ["-fsanitize=address", "-O1", "-g1"] if os.environ.get("ASAN") == "1" else []
    depends = [flags_file([*flags, *sanitize])]
    return [
        Extension(
            ".".join(("rowcall", *source.relative_to(ROOT).with_suffix("").parts)),
            [str(source.relative_to(ROOT))],
            include_dirs=[str(HEADERS)],
            extra_compile_args=[*flags, *sanitize, "-Wno-unused-function", "-Wno-unreachable-code"],
            extra_link_args=sanitize,
            depends=depends,
        )
        for source in sorted((ROOT / "ext").rglob("*.pyx"))
    ]


os.chdir(ROOT)
link_namespace()
setup(
    packages=packages(),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=cythonize(
        extensions(),
        include_path=[str(NAMESPACE)],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    ),
)
