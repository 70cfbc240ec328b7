"""Build the site of the manual: docs/ as static HTML in build/site, and packed for `rowcall --docs`.

A warning of MkDocs (a page that is not in the navigation, a link or an anchor that leads nowhere) is an error.

    ci/build_site.py [FOLDER]       FOLDER instead of build/site; nothing is packed then
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
ARCHIVE = ROOT / "service" / "manual" / "site.zip"
"""The archive for wheels (MANIFEST.in, pyproject.toml)."""
_TIME = (2020, 1, 1, 0, 0, 0)
"""Equal for all files, so that equal pages give equal archives."""
_OMITTED = (".map", ".gz", "objects.inv")


def build(folder: Path) -> int:
    """Run MkDocs and return its exit code."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    # Without the line in which Material for MkDocs announces its successor.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.returncode


def pack(folder: Path, archive: Path) -> None:
    """Write the files of the site into one archive, without source maps."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.endswith(_OMITTED):
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(entry, path.read_bytes())


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]).resolve() if arguments else SITE
    code = build(folder)
    if code == 0 and not arguments:
        pack(folder, ARCHIVE)
        print(f"{SITE.relative_to(ROOT)} is built, and {ARCHIVE.relative_to(ROOT)} for `rowcall --docs`")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
