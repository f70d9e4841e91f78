"""The worked examples of docs/sizing.md are true."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sizing.md"


def test_every_python_block_of_the_page_runs():
    blocks = list(re.finditer(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S))
    assert len(blocks) >= 8
    names: dict[str, object] = {}
    for block in blocks:
        line = PAGE.read_text().count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), str(PAGE), "exec"), names)
