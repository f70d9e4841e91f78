"""What goes wrong on a real cluster, and what the user then reads."""

import re
from collections.abc import Callable

import pytest
from support.jobs import job, template
from support.live import Namespace

GONE = "tjob,pods,services,configmaps"


def left_over(cluster: Namespace, name: str) -> list[str]:
    """What still stands of a job."""
    owned = cluster.items("pods", f"muster.dev/job={name}") + cluster.items("services", f"muster.dev/job={name}")
    owned += cluster.items("configmaps", f"muster.dev/job={name}")
    return [thing["metadata"]["name"] for thing in owned]


def uids(cluster: Namespace, name: str, role: str) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.pods(name, role)}


def test_a_script_that_crashes_fails_its_job_with_the_exit_code(cluster: Namespace) -> None:
    cluster.apply(job("crash", "echo no such data set >&2; exit 7"))
    cluster.wait_for("crash", "Failed")
    failed = cluster.condition("crash", "Failed")
    assert re.search(r"crash-worker-\d exited with 7: no such data set", failed["message"])
    assert cluster.status("crash")["completionTime"]


def test_a_crash_while_profiling_is_told_with_the_scripts_own_words(cluster: Namespace) -> None:
    manifest = job("badscript", "unused", profile=None)
    container = manifest["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["command"] = ["python3", "-c", "import torch; raise SystemExit('no such data set')"]
    cluster.apply(manifest)
    cluster.wait_for("badscript", "Failed")
    assert "no such data set" in cluster.condition("badscript", "Failed")["message"]


@pytest.mark.scenario("C12")
def test_an_image_that_does_not_exist_is_named(cluster: Namespace) -> None:
    manifest = job("noimage", "true", profile=None)
    manifest["spec"]["worker"]["template"] = template("true", image="muster-nowhere:none")
    cluster.apply(manifest)
    cluster.eventually(
        "the image in a condition",
        lambda: "muster-nowhere:none" in cluster.condition("noimage", "Profiled")["message"],
    )
    assert cluster.condition("noimage", "Complete")["status"] != "True"


def test_a_job_deleted_while_profiling_leaves_nothing(cluster: Namespace) -> None:
    cluster.apply(job("early", "python3 -c 'import time; time.sleep(600)'", profile=None))
    cluster.eventually("a profiling pod", lambda: cluster.pods("early", "profiler"))
    assert "finalizers" not in cluster.get("tjob", "early")["metadata"]
    cluster.kubectl("delete", "tjob", "early", "--timeout=120s")
    cluster.eventually("nothing left", lambda: not left_over(cluster, "early"))


def test_a_job_deleted_while_running_leaves_nothing(cluster: Namespace) -> None:
    cluster.apply(job("midway", "sleep 600", server="sleep 600"))
    cluster.wait_for("midway", "PodsReady")
    cluster.kubectl("delete", "tjob", "midway", "--timeout=120s")
    cluster.eventually("nothing left", lambda: not left_over(cluster, "midway"))


@pytest.mark.scenario("D3")
def test_the_operator_killed_while_profiling_profiles_once(
    cluster: Namespace, kill_operator: Callable[[], None]
) -> None:
    from e2e.kind.test_training import example

    manifest = example("pytorch-ddp")
    manifest["metadata"]["name"] = "interrupted"
    manifest["spec"]["mode"] = "Recommend"
    cluster.apply(manifest)
    first = cluster.eventually("a profiling pod", lambda: uids(cluster, "interrupted", "profiler"))
    kill_operator()
    cluster.wait_for("interrupted", "Complete")
    events = cluster.kubectl(
        "get", "events", "--field-selector=reason=Scheduled", "-o", "jsonpath={.items[*].involvedObject.uid}"
    )
    names = cluster.kubectl(
        "get", "events", "--field-selector=reason=Scheduled", "-o", "jsonpath={.items[*].involvedObject.name}"
    )
    profilers = {uid for uid, name in zip(events.split(), names.split(), strict=True) if "profiler" in name}
    assert profilers == set(first.values())


def test_the_operator_killed_while_training_makes_no_second_pod(
    cluster: Namespace, kill_operator: Callable[[], None]
) -> None:
    cluster.apply(job("steadfast", "sleep 20", server="sleep 600"))
    cluster.wait_for("steadfast", "PodsReady")
    before = uids(cluster, "steadfast", "worker")
    kill_operator()
    cluster.wait_for("steadfast", "Complete")
    left = uids(cluster, "steadfast", "worker")
    assert left["steadfast-worker-0"] == before["steadfast-worker-0"]
    assert left.items() <= before.items(), "a worker was made anew"
    assert cluster.status("steadfast")["restarts"] == 0
    cluster.eventually("servers removed", lambda: not cluster.pods("steadfast", "server"))
