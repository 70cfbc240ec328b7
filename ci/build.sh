#!/usr/bin/env bash
# The virtual environment, the extensions and the command `.venv/bin/rowcall`.
set -euo pipefail
cd "$(dirname "$0")/.."
make build
.venv/bin/rowcall --version
