#!/usr/bin/env bash
# Everything: the fast loop, then the tests on an API server, of the profiler, of the chart, and on kind. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
dev/check.sh
.venv/bin/pytest --durations=15 --ignore=tests/unit tests "$@"
