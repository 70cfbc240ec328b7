#!/usr/bin/env bash
# What `make test` leaves out as slow, and random examples at length.
set -euo pipefail
cd "$(dirname "$0")/.."
make thorough
