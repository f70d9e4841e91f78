#!/usr/bin/env bash
# Everything: the fast loop, then the tests on an API server, of the profiler, of the chart, and on kind. Arguments go to pytest.
# What the clusters need is built first, where its progress can be seen; then one process tests on kind while another does the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
dev/check.sh
prepare() { PYTHONPATH=dev .venv/bin/python -m muster_dev "$@"; }
{ prepare tools >/dev/null && prepare up; } || echo "the tests that need what is missing say why"
.venv/bin/pytest -n 2 --no-loadscope-reorder --durations=15 --ignore=tests/unit tests "$@"
