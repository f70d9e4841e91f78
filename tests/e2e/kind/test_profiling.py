"""Scripts of the profiler's corpus as TrainingJobs: of different kinds, and such as make profiling hard.

They are all applied at once: each spends most of its time waiting.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.jobs import job, template
from support.live import Namespace

SCRIPTS = Path(__file__).parents[2] / "profiler" / "scripts"
HUNGRY = """
import ctypes, mmap, os, sys, time, torch
from torch.utils.data import DataLoader, TensorDataset

def take_the_container_along():
    # The profiler watches the memory and ends a script in time. Here a debugger's means keep it from looking, and it is
    # what the kernel kills first.
    profiler, attach = os.getppid(), 16
    for thread in os.listdir(f"/proc/{profiler}/task"):
        if ctypes.CDLL(None).ptrace(attach, int(thread), None, None):
            sys.exit("ptrace is not permitted")
    for process, score in (("self", "0"), (profiler, "1000")):
        with open(f"/proc/{process}/oom_score_adj", "w") as file:
            file.write(score)
    for _ in range(16):  # none of which is as large as all together
        if not os.fork():
            held = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
            time.sleep(60)
    time.sleep(60)

batch = int(sys.argv[1])
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, wanted in DataLoader(TensorDataset(torch.randn(64000, 8), torch.randn(64000, 1)), batch_size=batch):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), wanted).backward()
    optimizer.step()
    if batch == 2048:
        take_the_container_along()
"""
PARAMETERS = {"gan": 4 * 8 + 8 + 8 + 1, "workers": 16 * 4 + 4, "accumulation": 16 + 1}
FLOODED = (8, 16, 32, 64, 128)  # 20 MB of log each


@pytest.fixture(scope="module")
def namespace(installed: Any) -> Iterator[str]:
    """One for all tests here, with the corpus in it and every job applied."""
    name = f"profiling-{secrets.token_hex(3)}"
    installed.create_namespace(name)
    here = Namespace(installed, name)
    here.kubectl("create", "configmap", "corpus", f"--from-file={SCRIPTS}")
    here.apply(*(corpus_job(script, f"/corpus/{script}.py") for script in PARAMETERS), *hard())
    yield name
    installed.delete_namespace(name)


def corpus_job(name: str, *command: str, candidates: tuple[int, ...] = (), **spec: Any) -> dict[str, Any]:
    """Profiles a script and stops after the plan."""
    manifest = job(name, "unused", mode="Recommend", profile=None, **spec)
    worker = template("unused")
    worker["spec"]["containers"][0] |= {
        "command": ["python3", *command, *(["$(MUSTER_MINIBATCH)"] if candidates else [])],
        "volumeMounts": [{"name": "corpus", "mountPath": "/corpus"}],
    }
    worker["spec"]["volumes"] = [{"name": "corpus", "configMap": {"name": "corpus"}}]
    manifest["spec"]["worker"] = {"template": worker, "replicas": 2}
    if candidates:
        manifest["spec"]["miniBatch"] = {"candidates": list(candidates)}
    return manifest


def hard() -> Iterator[dict[str, Any]]:
    hungry = corpus_job("hungry", "-c", HUNGRY, candidates=(16, 2048))
    hungry["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "900Mi"}}
    yield hungry
    stuck = corpus_job("stuck", "/corpus/hangs.py", "32")
    stuck["spec"]["profile"] = {"activeDeadlineSeconds": 90}
    yield stuck
    yield corpus_job("flood", "/corpus/floods.py", candidates=FLOODED)
    alone = corpus_job("alone", "/corpus/plain.py", network={})
    server = template("sleep 600")
    server["spec"]["nodeSelector"] = {"nowhere": "true"}
    alone["spec"]["server"] = {"template": server}
    yield alone


@pytest.mark.scenario("A4")
def test_a_script_that_hangs_tells_how_far_it_came_and_fails_by_the_profiles_deadline(cluster: Namespace) -> None:
    """The first here: it looks at what is told while it hangs."""
    cluster.eventually("how far it has come", lambda: "(1 of 1)" in cluster.condition("stuck", "Profiled")["message"])
    cluster.wait_for("stuck", "Failed")
    failed = cluster.condition("stuck", "Failed")
    assert failed["reason"] == "ProfilingFailed"
    assert "deadline" in failed["message"].lower()


@pytest.mark.parametrize("script", PARAMETERS)
def test_a_script_of_another_kind_is_profiled_as_it_is(cluster: Namespace, script: str) -> None:
    cluster.wait_for(script, "Profiled")
    profile = cluster.status(script)["profile"]
    assert profile["parameterBytes"] == 4 * PARAMETERS[script]
    assert [point["fits"] for point in profile["points"]] == [True]


@pytest.mark.scenario("A4")
def test_a_batch_at_which_the_kubelet_ends_the_container_is_the_one_that_does_not_fit(cluster: Namespace) -> None:
    cluster.wait_for("hungry", "Profiled")
    if "ptrace is not permitted" in cluster.kubectl("logs", "hungry-profiler"):
        pytest.skip("this cluster's nodes let no process hold another, so the profiler is always the faster one")
    points = cluster.status("hungry")["profile"]["points"]
    assert [(point["miniBatch"], point["fits"]) for point in points] == [(16, True), (2048, False)]
    ended = cluster.pods("hungry", "profiler")[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled"), "the kubelet was not needed"


def test_a_report_is_found_behind_a_log_of_100_megabytes(cluster: Namespace) -> None:
    cluster.wait_for("flood", "Profiled")
    points = cluster.status("flood")["profile"]["points"]
    assert [(point["miniBatch"], point["fits"]) for point in points] == [(batch, True) for batch in FLOODED]


def test_a_peer_that_no_node_takes_is_a_warning(cluster: Namespace) -> None:
    cluster.wait_for("alone", "Complete")
    warnings = [each["reason"] for each in cluster.status("alone")["plan"]["warnings"]]
    assert "BandwidthAssumed" in warnings
    cluster.eventually("no peer", lambda: not cluster.pods("alone", "peer"))
