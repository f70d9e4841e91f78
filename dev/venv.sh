#!/usr/bin/env bash
# Makes .venv of exactly the locked versions: uv from the cache folder, packages hard-linked from uv's cache there.
# `dev/venv.sh lock` resolves pyproject.toml anew into constraints.txt first. `dev/venv.sh oldest` makes another one, in the
# cache folder, of the oldest Python and torch that the profiler must work with, and prints the path of its Python. Both are
# compiled once: importing torch takes 9 s from its sources and 4 s from bytecode, and tests import it often.
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
  compile="$uv pip compile -q --no-annotate --no-header --no-emit-index-url --no-emit-find-links --universal"
  $compile --python-version 3.11 --all-extras --group dev pyproject.toml -o constraints.txt
  $compile --python-version 3.9 --group oldest -o constraints-oldest.txt
fi
if [ "${1:-}" = oldest ]; then
  oldest=$cache/oldest-$(sha256sum <constraints-oldest.txt | cut -c1-12)
  exec 9>"$oldest.lock" && flock 9
  if [ ! -e "$oldest/.complete" ]; then
    for python in python3.9 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.9.*/bin/python ""; do
      ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 9))' 2>/dev/null || break
    done
    [ -n "$python" ] || { echo "no Python 3.9 is on the PATH, nor in pyenv's folder" >&2; exit 1; }
    $uv venv -q --clear --python "$python" "$oldest"
    $uv pip install -q --compile-bytecode --python "$oldest/bin/python" -r constraints-oldest.txt
    touch "$oldest/.complete"
  fi
  echo "$oldest/bin/python"
  exit
fi
stamp=$(cat pyproject.toml constraints.txt dev/venv.sh | sha256sum | cut -d' ' -f1)
[ "$(cat .venv/.stamp 2>/dev/null)" != "$stamp" ] || exit 0
recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }   # asked, not looked up: a version manager's shim may not run
for python in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do ! recent "$python" || break; done
recent "$python" || { echo "Muster needs Python 3.11 or later. Install one, or set PYTHON to it." >&2; exit 1; }
[ -x .venv/bin/python ] || $uv venv -q --clear --python "$python" .venv
$uv pip install -q --compile-bytecode --python .venv/bin/python -c constraints.txt --group dev -e '.[profiler,plot]'
echo "$stamp" >.venv/.stamp
