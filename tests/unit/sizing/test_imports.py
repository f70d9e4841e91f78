"""Sizing costs nothing to import: solvers and plots are loaded by whoever needs them."""

import subprocess
import sys


def test_importing_and_planning_without_convolutions_loads_no_solver_and_no_plots():
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import muster.sizing\n"
        "from unit.sizing.reports import efficiency, limits, point, report\n"
        "muster.sizing.plan(report(point(64, 0.2, 0.01)), efficiency(80), limits(uses_servers=True), None)\n"
        "heavy = {'scipy', 'numpy', 'matplotlib', 'kubernetes', 'kopf'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
