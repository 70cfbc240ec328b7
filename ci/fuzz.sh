#!/usr/bin/env bash
# Every fuzz target for SECONDS, all at once, with the extensions built under AddressSanitizer in a tree of their own.
#
#   ci/fuzz.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-20}"
python="$PWD/.venv/bin/python"
tree="$PWD/build/asan"

mkdir -p "$tree"
git ls-files -z core ext service tests setup.py pyproject.toml | tar --null -T - -cf - | tar -xf - -C "$tree"
# What Cython has made of them is the same.
for file in ext/*/*.c; do cp -p "$file" "$tree/$file"; done
cd "$tree"
ASAN=1 PYTHONWARNINGS=ignore "$python" setup.py --quiet build_ext --inplace > build.log 2>&1 || { cat build.log; exit 1; }
grep -q __asan_init ext/rendering/values.*.so
export PYTHONPATH="$tree:$tree/build/namespace" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0
export LD_PRELOAD="$(cc -print-file-name=libasan.so)"

targets=()
pids=()
for file in tests/fuzz/fuzz_*.py; do
    target="$(basename "$file" .py)"
    "$python" -P -m "tests.fuzz.$target" "$seconds" > "$target.log" 2>&1 &
    targets+=("$target")
    pids+=($!)
done
failed=0
for number in "${!targets[@]}"; do
    wait "${pids[$number]}" || failed=1
    echo "${targets[$number]}: $(tail -n 1 "${targets[$number]}.log")"
done
if [ "$failed" -ne 0 ]; then
    tail -n 60 fuzz_*.log
    exit 1
fi
