"""A manifest's mistakes are told by file, line and field, with what would fix them."""

from pathlib import Path
from textwrap import dedent

import pytest
from muster.cli.manifest import ManifestError, load

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/job.yaml"))

GOOD = """\
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata:
  name: train
spec:
  goal:
    efficiencyPercent: 80
  worker:
    template:
      spec:
        containers:
          - name: train
            command: [python, train.py]
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        load(path)
    return [line.removeprefix(f"{tmp_path}/") for line in str(caught.value).splitlines()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_are_read(path: Path) -> None:
    assert len(load(path).jobs) == 1


@pytest.mark.scenario("C2")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "efficiencyPercent: 80",
            "efficiencyPercnt: 80",
            "7: spec.goal.efficiencyPercnt: unknown field; did you mean efficiencyPercent?",
        ),
        ("  goal:", "  gaol: 1\n  goal:", "6: spec.gaol: unknown field; did you mean goal?"),
        (
            "efficiencyPercent: 80",
            "efficiencyPercent: 180",
            "7: spec.goal.efficiencyPercent: input should be less than or equal to 100",
        ),
        (
            "efficiencyPercent: 80",
            'efficiencyPercent: "80"',
            "7: spec.goal.efficiencyPercent: input should be a valid integer",
        ),
        (
            "efficiencyPercent: 80",
            'efficiencyPercent: 80\n    speedup: "2"',
            "6: spec.goal: give exactly one goal: efficiencyPercent, speedup",
        ),
        (
            "  worker:",
            "  worker:\n    replicas: 0",
            "9: spec.worker.replicas: input should be greater than or equal to 1",
        ),
        (
            "[python, train.py]",
            "python train.py",
            "13: spec.worker.template.spec.containers[0].command: input should be a valid",
        ),
        (
            "  name: train\nspec",
            "  name: Train_1\nspec",
            "4: metadata.name: a job's name is at most 49 lower-case letters",
        ),
        ("  name: train\nspec", "  nam: train\nspec", "3: metadata.name: missing: a job needs a name"),
        ("kind: TrainingJob\n", "", "1: kind: missing: write kind: TrainingJob"),
        ("v1alpha1", "v2", "1: apiVersion: must be muster.dev/v1alpha1, not muster.dev/v2"),
        ("metadata:", "metdata: {}\nmetadata:", "3: metdata: unknown field; did you mean metadata?"),
        ("  goal:\n    efficiencyPercent: 80\n", "", "5: spec.goal: missing"),
        ("  worker:", "  goal: {speedup: '2'}\n  worker:", "8: spec.goal: given twice"),
        ("kind: TrainingJob", "kind: [TrainingJob", "3: not YAML"),
        (GOOD, "- 1\n", "1: not a Kubernetes object: a mapping is expected"),
        ("  worker:", "  worker:\n    replicas: .nan", "1: not a Kubernetes object: Out of range float values"),
        (GOOD, "a: &a [*a]\n", "1: not a Kubernetes object"),
        (GOOD, "", " no TrainingJob in it"),
        (GOOD, "apiVersion: v1\nkind: Secret\n", " no TrainingJob in it, only Secret"),
    ],
)
def test_a_mistake_is_told_by_line_and_field(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GOOD
    found = problems(tmp_path, GOOD.replace(old, new, 1))
    assert any(line.startswith(f"job.yaml:{told}") for line in found), found


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = GOOD.replace("80", "0").replace("goal:", "framwork: PyTorch\n  goal:").replace("train\nspec", "TRAIN\nspec")
    assert [line.split(":")[1] for line in problems(tmp_path, text)] == ["4", "6", "8"]


def test_several_documents_and_what_goes_with_them(tmp_path: Path) -> None:
    report = dedent("""\
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: profile}
        data: {report.json: "{}"}
        ---
        apiVersion: v1
        kind: Namespace
        ---
        """)
    path = tmp_path / "jobs.yaml"
    path.write_text(f"{report}{GOOD}---\n# nothing\n---\n{GOOD.replace('name: train', 'name: second', 1)}")
    documents = load(path)
    assert [job.name for job in documents.jobs] == ["train", "second"]
    assert documents.config_maps == {"profile": {"report.json": "{}"}}
    assert documents.others == ("Namespace",)


def test_a_mistake_in_a_later_document_is_told_by_the_line_of_the_file(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{GOOD}---\n{GOOD.replace('80', '0')}")[0].startswith("job.yaml:21:")


@pytest.mark.parametrize("path", ["/nowhere/job.yaml", "/"])
def test_a_file_that_cannot_be_read(path: str) -> None:
    with pytest.raises(ManifestError, match=path):
        load(Path(path))
