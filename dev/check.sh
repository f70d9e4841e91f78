#!/usr/bin/env bash
# The fast loop: lint, format, types, layers, unit tests. Every step runs even if one before it failed, so one run shows all that is wrong.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin failed=()
step() {
  local name=$1; shift
  echo "== $name"
  "$@" || failed+=("$name")
}
step "ruff check" $bin/ruff check --quiet .
step "ruff format" $bin/ruff format --check --quiet .
step "types" $bin/mypy
step "types of the profiler" $bin/mypy --python-version 3.10 profiler/muster_profiler   # the oldest that mypy knows
step "layers" env PYTHONPATH=operator:profiler $bin/lint-imports
step "unit tests" $bin/pytest -q tests/unit "$@"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[*]}" >&2; exit 1; }
