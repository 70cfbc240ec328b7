#!/usr/bin/env bash
# The attack tests with their long forms, which `make test` leaves out. They may take two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
make build  # outside of the limit, as a changed dependency compiles everything again
timeout 120 make attack
