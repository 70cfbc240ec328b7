#!/usr/bin/env bash
# The faults that take their time: hangs, locks, full tables of descriptors. In four minutes at most.
set -euo pipefail
cd "$(dirname "$0")/.."
make drills
