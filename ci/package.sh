#!/usr/bin/env bash
# Builds the wheel, installs it where nothing can be compiled, starts it there and sends one request.
#
# Not in the container of cibuildwheel (pyproject.toml), which makes the wheels that are published: so the tag of this one
# says no more than that it runs on this machine's libc.
set -euo pipefail
cd "$(dirname "$0")/.."
make dist
.venv/bin/python - <<'PY'
import subprocess, tarfile, zipfile
from pathlib import Path, PurePath

folders = ("core", "ext", "service")
tracked = subprocess.run(["git", "ls-files", *folders], check=True, text=True, capture_output=True).stdout.split()
with tarfile.open(next(Path("dist").glob("*.tar.gz"))) as archive:
    packed = {name.partition("/")[2] for name in archive.getnames()}
absent = [name for name in tracked if name not in packed]
assert not absent, f"the source archive has no {absent}"
with zipfile.ZipFile(next(Path("dist").glob("*.whl"))) as wheel:
    compiled = {name.removeprefix("rowcall/").split(".")[0] for name in wheel.namelist() if name.endswith(".so")}
sources = {str(PurePath(name).with_suffix("")) for name in tracked if name.endswith(".pyx")}
assert compiled == sources, f"the wheel has other extensions than the sources: {compiled ^ sources}"
PY
room="$(mktemp -d)"
trap 'rm -rf "$room"' EXIT
.venv/bin/python -m venv "$room/venv"
# No compiler, and nothing that would need one. psycopg's wheel brings libpq.
CC=false CXX=false "$room/venv/bin/python" -m pip --disable-pip-version-check install --quiet \
    --only-binary :all: "$(echo dist/*.whl)[embedded]"
cp ci/serve_once.py "$room"
cd "$room"
venv/bin/python -c 'import psycopg.pq as pq; print("libpq", pq.version(), pq.__impl__); assert pq.version() >= 170000'
venv/bin/python -c 'from rowcall.service.manual.archive import ARCHIVE, Site; assert Site(ARCHIVE).file("/")'
venv/bin/python serve_once.py venv/bin/rowcall
cd "$OLDPWD"
# The other ways to deploy it, with what checks them (too large for `make test`).
.venv/bin/python -m pip --disable-pip-version-check install --quiet --group deployment
.venv/bin/python -m pytest -q tests/docs/test_deployment.py
