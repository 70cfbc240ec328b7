#!/usr/bin/env bash
# Exactly the command of the README.
set -euo pipefail
cd "$(dirname "$0")/.."
make test
