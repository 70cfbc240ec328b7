#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, starts it there and sends one request.
set -euo pipefail
cd "$(dirname "$0")/.."
make dist
room="$(mktemp -d)"
trap 'rm -rf "$room"' EXIT
.venv/bin/python -m venv "$room/venv"
ci/install_psycopg.sh "$room/venv"
"$room/venv/bin/python" -m pip --disable-pip-version-check install --quiet dist/*.whl
cp ci/serve_once.py "$room"
cd "$room"
venv/bin/python serve_once.py venv/bin/rowcall
