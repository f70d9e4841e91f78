#!/usr/bin/env bash
# Makes .venv of exactly the locked versions: uv from the cache folder, packages hard-linked from uv's cache there.
# `dev/venv.sh lock` resolves pyproject.toml anew into constraints.txt first.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${MUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster}
uv_version=0.13.9
tool=$cache/uv-$uv_version
export UV_CACHE_DIR=$cache/uv UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never
if [ ! -x "$tool/bin/uv" ]; then
  rm -rf "$tool.part" && python3 -m venv "$tool.part" && "$tool.part/bin/python" -m pip install -q "uv==$uv_version"
  rm -rf "$tool" && mv "$tool.part" "$tool"
fi
uv=$tool/bin/uv
if [ "${1:-}" = lock ]; then
  $uv pip compile -q --no-annotate --no-header --no-emit-index-url --no-emit-find-links --universal --python-version 3.11 \
    --all-extras --group dev pyproject.toml -o constraints.txt
fi
stamp=$(cat pyproject.toml constraints.txt dev/venv.sh | sha256sum | cut -d' ' -f1)
[ "$(cat .venv/.stamp 2>/dev/null)" != "$stamp" ] || exit 0
recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }   # asked, not looked up: a version manager's shim may not run
for python in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do ! recent "$python" || break; done
recent "$python" || { echo "Muster needs Python 3.11 or later. Install one, or set PYTHON to it." >&2; exit 1; }
[ -x .venv/bin/python ] || $uv venv -q --clear --python "$python" .venv
$uv pip install -q --python .venv/bin/python -c constraints.txt --group dev -e '.[profiler,plot]'
echo "$stamp" >.venv/.stamp
