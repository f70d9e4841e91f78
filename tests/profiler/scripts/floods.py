"""Prints 20 MB a candidate."""

import runpy
from pathlib import Path

for line in range(200_000):
    print(f"{line:099}")
runpy.run_path(str(Path(__file__).with_name("plain.py")))
