"""A prediction model costs nothing until it is fitted."""

import subprocess
import sys


def test_importing_the_models_loads_neither_numpy_nor_scipy():
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import muster.sizing.prediction\n"
        "heavy = {'scipy', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
