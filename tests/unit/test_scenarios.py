"""docs/scenarios.md against the tests that carry a scenario's number: each has some, and where the page says."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "scenarios.md"
HOW_MANY = {"A": 10, "B": 5, "C": 15, "D": 8}
SCENARIOS = [f"{letter}{number}" for letter, count in HOW_MANY.items() for number in range(1, count + 1)]


def marked() -> dict[str, set[str]]:
    """The files with tests of each scenario, by what their decorators say: importing them would take a minute."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for mark in getattr(node, "decorator_list", ()):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.scenario":
                    for number in map(ast.literal_eval, mark.args):
                        found[number].add(str(path.relative_to(TESTS).with_suffix("")))
    return found


MARKED = marked()
ROWS = dict(re.findall(r"^\| ([A-D]\d+) \|.*\|(.*)\|$", PAGE.read_text(), re.MULTILINE))


@pytest.mark.parametrize("number", SCENARIOS)
def test_a_scenario_has_tests_and_the_page_says_where(number: str) -> None:
    assert MARKED[number], f'no test has @pytest.mark.scenario("{number}")'
    assert set(re.findall("`([^`]+)`", ROWS[number])) == MARKED[number]


def test_nothing_is_marked_with_a_scenario_that_there_is_not() -> None:
    assert set(MARKED) <= set(SCENARIOS)
    assert list(ROWS) == SCENARIOS
