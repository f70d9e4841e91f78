"""`make gpu-check`: what it says of a GPU that is made up, and without one."""

import json
from types import SimpleNamespace

import gpu_check
import pytest
from muster_dev import gpu
from muster_dev.gpu import CheckFailedError, Finding, NotHereError

GIB = 1 << 30
PARAMETERS = {"0.weight": 4000, "0.bias": 40}
ITEMS = [
    "compute time",
    "host-to-device copy",
    "overhead time",
    "convolution algorithms",
    "cuDNN's single plans",
    *gpu.SETTINGS,
    "parameters",
    gpu.ESTIMATE,
    "memory by two lines",
    "largest batch that fits",
    "out of memory is a result",
    "mixed precision with GradScaler",
    "torch.compile",
    "overhead of measuring",
]


def timing(milliseconds):
    return {"medianNanoseconds": round(milliseconds * 1e6)}


def peak(batch):
    """Bytes of the made-up script."""
    return GIB + batch * (1 << 20)


class Machine:
    """A GPU of 64 GiB: 50 ms of compute, 5 of copying, 10 of loading. `wrong` changes what the profiler makes of it."""

    front_end = True

    def __init__(self, **wrong):
        self.wrong = {
            "compute": 50,
            "copy": 5,
            "peak": peak,
            "estimate": peak,
            "algorithms": True,
            "watched": 0.065,
        } | wrong

    def plain(self, kind, batch, **_):
        if kind == self.wrong.get("without"):
            raise NotHereError("no compiler")
        times = {"iterationSeconds": 0.065, "copySeconds": 0.005, "computeSeconds": 0.05}
        return {**times, "peakBytes": peak(batch), "outsideBytes": GIB, "retries": 0, "parameters": PARAMETERS}

    def watched(self, *_):
        return self.wrong["watched"]

    def profile(self, _name, _kind, batches, **options):
        if self.wrong["peak"](batches[-1]) > 63 * GIB:
            return {"problem": {"reason": "OutOfMemory", "message": "no candidate fits"}}
        points = [
            {
                "miniBatch": batch,
                "fits": True,
                "computeTime": timing(self.wrong["compute"]),
                "overheadTime": timing(10 + self.wrong["copy"]),
                "overheadParts": {"hostToDeviceNanoseconds": self.wrong["copy"] * 1_000_000},
                "memory": {
                    "forwardBackwardBytes": self.wrong["peak"](batch),
                    "optimizerStepBytes": GIB,
                    "peakBytes": self.wrong["peak"](batch),
                    "predictedPeakBytes": self.wrong["estimate"](batch),
                    "marginBytes": self.wrong["peak"](batch) // 20,
                },
            }
            for batch in batches
        ]
        report = {
            "device": {"memoryBytes": 64 * GIB},
            "points": points,
            "parameters": {
                "exchangedBytes": 4040,
                "tensors": [{"name": name, "bytes": size} for name, size in PARAMETERS.items()],
            },
            "warnings": [],
        }
        if options.get("convolution_seconds") and self.wrong["algorithms"]:
            ways = [{"name": "Cudnn", "kind": "cuDNN"}, {"name": "cudnn:eng1", "kind": "Winograd"}]
            report["convolutions"] = [{"used": "Cudnn", "algorithms": ways}]
            report["convolutionTrials"] = [
                {"setting": setting, "miniBatch": batches[-1], "computeTime": timing(40)} for setting in gpu.SETTINGS
            ]
        return report


def results(machine):
    return {finding.item: finding.result for finding in gpu.findings(machine)}


def test_a_gpu_on_which_all_is_right():
    assert results(Machine()) == dict.fromkeys(ITEMS, "ok")


@pytest.mark.parametrize(
    ("wrong", "failed"),
    [
        ({"compute": 52}, {"compute time", "mixed precision with GradScaler", "torch.compile"}),
        ({"copy": 7}, {"host-to-device copy", "overhead time"}),
        ({"watched": 0.067}, {"overhead of measuring"}),
        ({"peak": lambda batch: round(1.05 * peak(batch))}, {"memory by two lines"}),
        ({"estimate": lambda batch: round(0.9 * peak(batch))}, {gpu.ESTIMATE}),
        ({"algorithms": False}, {"convolution algorithms", "cuDNN's single plans", *gpu.SETTINGS}),
    ],
)
def test_what_is_wrong_fails_its_item_and_no_other(wrong, failed):
    found = results(Machine(**wrong))

    assert {item for item, result in found.items() if result == "failed"} == failed
    assert found.keys() == set(ITEMS)


def test_the_largest_batch_is_what_the_report_s_own_margin_leaves_room_for_and_a_larger_one_runs_out():
    machine = Machine()
    found = {finding.item: finding.measured for finding in gpu.findings(machine)}

    largest, beyond = (1024 * (63 / 1.05 - 1), 1024 * (63 * 1.15 - 1))
    assert found["largest batch that fits"] == str(int(largest))
    assert found["out of memory is a result"] == f"at {int(beyond)}: OutOfMemory"


def test_what_the_machine_lacks_is_told_apart_from_what_fails():
    machine = Machine(without="compiled")
    machine.front_end = False

    found = results(machine)
    assert {item for item, result in found.items() if result == "not here"} == {"torch.compile", "cuDNN's single plans"}
    assert "failed" not in found.values()


def test_an_item_whose_run_fails_says_how_and_the_others_go_on():
    machine = Machine()

    def watched(*_):
        raise CheckFailedError("the plain script failed: no room")

    machine.watched = watched
    found = list(gpu.findings(machine))

    assert found[-1] == Finding("overhead of measuring", "failed", "the plain script failed: no room")
    assert len(found) == len(ITEMS)


def test_the_table_and_the_file(monkeypatch, tmp_path, capsys):
    facts = {"torch": "2.11.0", "cuda": "13.0", "cudnn": 91000, "frontEnd": True, "device": "NVIDIA H200"}
    monkeypatch.setattr(gpu_check, "facts_here", lambda: ("python3", facts))
    monkeypatch.setattr(gpu_check, "Here", lambda *_: Machine(watched=0.067))

    assert gpu_check.main(["--out", str(tmp_path / "new")]) == 1

    shown = capsys.readouterr().out
    assert "NVIDIA H200, PyTorch 2.11.0, cuDNN 91000" in shown
    assert "50.00 ms, true 50.00 ms (+0.0%)" in shown
    written = json.loads((tmp_path / "new" / "gpu-check.json").read_text())
    assert written["device"] == "NVIDIA H200"
    assert {row["item"]: row["result"] for row in written["items"]}["overhead of measuring"] == "failed"


def test_without_a_gpu_it_says_so_in_a_sentence_and_writes_nothing(monkeypatch, tmp_path, capsys):
    told = SimpleNamespace(returncode=0, stdout='{"torch": "2.15.0", "device": null}\n')
    monkeypatch.setattr(gpu_check.subprocess, "run", lambda *_, **__: told)
    monkeypatch.setattr(gpu_check.shutil, "which", lambda name: str(name) if name == "python3" else None)

    assert gpu_check.main(["--out", str(tmp_path / "new")]) == gpu_check.NO_GPU == 3

    assert capsys.readouterr().err == (
        "gpu-check needs a GPU and found none (PyTorch 2.15.0 of python3 sees none): nothing was checked.\n"
    )
    assert not (tmp_path / "new").exists()
