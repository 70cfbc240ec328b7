#!/usr/bin/env bash
# Format, lint and types.
set -euo pipefail
cd "$(dirname "$0")/.."
make check
