"""The worked examples of docs/sizing.md are true."""

import re
from pathlib import Path

import pytest
from muster.cli.plan import read_runs

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sizing.md"


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    """What every Python block of the page, run in turn, leaves behind."""
    blocks = list(re.finditer(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S))
    assert len(blocks) >= 8
    names: dict[str, object] = {}
    for block in blocks:
        line = PAGE.read_text().count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), str(PAGE), "exec"), names)
    return names


def test_every_python_block_of_the_page_runs(names: dict[str, object]) -> None:
    assert "found" in names


def test_the_page_s_file_of_runs_is_read_as_the_runs_of_its_python_block(
    names: dict[str, object], tmp_path: Path
) -> None:
    [block] = re.findall(r"^```yaml\n(# runs.yaml.*?)^```", PAGE.read_text(), flags=re.M | re.S)
    (tmp_path / "runs.yaml").write_text(block)
    assert read_runs(tmp_path / "runs.yaml") == names["runs"]
