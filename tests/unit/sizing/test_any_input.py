"""Whatever a report and a spec hold within their schemas: a plan that respects the limits, or a reasoned refusal."""

from hypothesis import given, settings
from hypothesis import strategies as st
from muster.api.inventory import Inventory, Node
from muster.api.job import Framework, Goal, Scaling, Workspace
from muster.sizing import Infeasible, curves, plan
from unit.sizing.reports import limits, report, timing

nanoseconds = st.sampled_from([0, 1, 1000, 10**6, 2 * 10**8, 10**12, 10**15])
optional = st.one_of(st.none(), st.integers(1, 40))
bandwidths = st.one_of(st.none(), st.sampled_from([1e3, 1e6, 1.25e9, 1e13]))


@st.composite
def points(draw):
    times = {}
    for name in ("computeTime", "overheadTime"):
        if draw(st.integers(0, 5)):
            low, median, high = (draw(nanoseconds) for _ in range(3))
            times[name] = timing(0) | {
                "medianNanoseconds": median,
                "intervalLowNanoseconds": low,
                "intervalHighNanoseconds": high,
            }
    memory = draw(st.sampled_from([None, 0, 1 << 30, 17 << 30]))
    return {
        "miniBatch": draw(st.integers(1, 200)),
        "fits": draw(st.integers(0, 4)) > 0,
        "steady": draw(st.booleans()),
        **times,
        **({} if memory is None else {"memory": {"peakBytes": memory}}),
    }


convolutions = st.builds(
    lambda batch, algorithms, used: {
        "shape": "s",
        "direction": "forward",
        "miniBatch": batch,
        "used": used,
        "algorithms": [
            {"name": str(i), "kind": "GEMM", "timeNanoseconds": t, "workspaceBytes": m}
            for i, (t, m) in enumerate(algorithms)
        ],
    },
    st.integers(1, 200),
    st.lists(st.tuples(nanoseconds, st.sampled_from([0, 1, 10**9, 10**16])), min_size=1, max_size=3),
    st.sampled_from([None, "0", "9"]),
)
goals = st.one_of(
    st.integers(1, 100).map(lambda percent: Goal(efficiency_percent=percent)),
    st.sampled_from(["0.001", "1", "7.5", "9999.999"]).map(lambda factor: Goal(speedup=factor)),
    st.sampled_from([(1, 10**15), (10**8, 1)]).map(lambda d: Goal(deadline={"seconds": d[0], "samples": d[1]})),
    st.sampled_from([(1, 10**15), (10**12, 1)]).map(lambda c: Goal(cost={"gpuSeconds": c[0], "samples": c[1]})),
)
clusters = st.one_of(
    st.none(),
    st.builds(
        lambda gpus, quota: Inventory(tuple(Node(f"n{i}", n, 0, 0) for i, n in enumerate(gpus)), quota),
        st.lists(st.integers(0, 8), max_size=4),
        st.one_of(st.none(), st.integers(0, 8)),
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.lists(points(), min_size=1, max_size=4, unique_by=lambda point: point["miniBatch"]),
    goals,
    clusters,
)
def test_a_plan_within_the_limits_or_a_refusal_that_says_why(data, measured, goal, cluster):
    draw = data.draw
    profile = report(
        *measured,
        parameter_bytes=draw(st.sampled_from([0, 1, 10**8, 10**16])),
        memory=draw(st.sampled_from([0, 16 << 30])),
        tensors=draw(st.lists(st.sampled_from([0, 1, 10**6, 10**9]), max_size=4)),
        convolutions=draw(st.lists(convolutions, max_size=2)),
        miniBatchApplied=draw(st.booleans()),
    )
    uses_servers = draw(st.booleans())
    wanted = limits(
        framework=draw(st.sampled_from(list(Framework))),
        scaling=draw(st.sampled_from(list(Scaling))),
        workspace=draw(st.sampled_from(list(Workspace))),
        uses_servers=uses_servers,
        gpus_per_worker=draw(st.sampled_from([1, 2, 8])),
        minibatch=draw(st.one_of(st.none(), st.integers(1, 300))),
        workers=draw(optional),
        servers=draw(optional) if uses_servers else None,
        max_workers=draw(st.integers(1, 12)),
        max_servers=draw(st.integers(1, 12)) if uses_servers else 0,
        server_bandwidth=draw(bandwidths),
        worker_bandwidth=draw(bandwidths),
        latency_seconds=draw(st.sampled_from([None, 0.0, 1e-4, 10.0])),
        local_aggregation=draw(st.booleans()),
        overlap=draw(st.sampled_from([0.0, 2 / 3, 1.0])),
    )
    found = answer(profile, goal, wanted, cluster)
    if isinstance(found, Infeasible):
        assert found.reason.isalnum()
        assert found.message.endswith(".")
        return
    assert found == plan(profile, goal, wanted, cluster)
    assert found == type(found).model_validate_json(found.model_dump_json(by_alias=True))
    assert found.workers.value == (wanted.workers or found.workers.recommended)
    assert wanted.workers or found.workers.value <= wanted.max_workers
    assert found.servers.recommended <= max(wanted.max_servers, 0)
    assert found.servers.value == (wanted.servers or found.servers.recommended)
    assert wanted.minibatch is None or found.mini_batch.value == wanted.minibatch
    assert cluster is None or found.workers.value * wanted.gpus_per_worker <= cluster.gpus
    drawn = curves(profile, goal, wanted, cluster)
    assert (drawn.chosen_gpus, drawn.chosen_servers) == (
        found.workers.value * wanted.gpus_per_worker,
        found.servers.value,
    )


def answer(*question):
    try:
        return plan(*question)
    except Infeasible as refusal:
        return refusal
