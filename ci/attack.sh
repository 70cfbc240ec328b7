#!/usr/bin/env bash
# The attack tests with their long forms, which `make test` leaves out. They may take two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
timeout 120 make attack
