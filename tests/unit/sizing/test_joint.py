"""The joint choice equals a search through everything within the limits."""

from hypothesis import given, settings
from hypothesis import strategies as st
from muster.api.job import Framework, Goal, Scaling
from muster.sizing import joint
from muster.sizing.goals import Target
from muster.sizing.problem import Problem
from muster.sizing.rounding import EPSILON
from unit.sizing.reports import limits, point, report

goals = st.one_of(
    st.integers(1, 100).map(lambda percent: Goal(efficiencyPercent=percent)),
    st.floats(1, 8).map(lambda factor: Goal(speedup=f"{factor:.2f}")),
    st.integers(1, 400).map(lambda seconds: Goal(deadline={"seconds": seconds, "samples": 50_000})),
    st.integers(1, 2000).map(lambda seconds: Goal(cost={"gpuSeconds": seconds, "samples": 50_000})),
)
points = st.dictionaries(
    st.sampled_from([8, 16, 32, 64]), st.tuples(st.floats(0.01, 0.5), st.floats(0, 0.05)), min_size=1, max_size=4
)
shapes = st.lists(st.integers(1, 2_000_000), max_size=5)
MOST_WORKERS, MOST_SERVERS = 10, 6


@settings(max_examples=80, deadline=None)
@given(
    goals,
    points,
    st.sampled_from(list(Scaling)),
    st.booleans(),
    st.integers(10**5, 10**8),
    shapes,
    st.sampled_from([Framework.TENSORFLOW, Framework.MXNET, Framework.GENERIC]),
)
def test_no_mini_batch_workers_and_servers_within_the_limits_are_better(
    goal, measured, scaling, uses_servers, size, tensors, framework
):
    wanted = limits(
        scaling=scaling,
        uses_servers=uses_servers,
        framework=framework,
        max_workers=MOST_WORKERS,
        max_servers=MOST_SERVERS,
        server_bandwidth=1e8,
        worker_bandwidth=2e8,
    )
    profile = report(
        *(point(batch, compute, overhead) for batch, (compute, overhead) in measured.items()),
        parameter_bytes=size,
        tensors=tensors,
    )
    problem = Problem(profile, Target.of(goal), wanted, None)
    everything = {
        model.candidate.minibatch: [
            state
            for workers in range(1, cap.workers + 1)
            for servers in range((MOST_SERVERS if uses_servers else 0) + 1)
            if problem.target.met(state := model.at(workers, servers))
            and (workers == 1 or bool(servers) == uses_servers)
        ]
        for model, cap in problem.models
    }
    found = joint.solve(problem.models, problem.target)
    if found is None:
        assert not any(everything.values())
        return
    chosen = found.state
    # The mini-batch: as fast on one GPU as any with which the goal can be met, within the tie.
    rates = {model.candidate.minibatch: model.candidate.samples_per_second for model, _ in problem.models}
    fastest = max(rates[batch] for batch, states in everything.items() if states)
    assert rates[found.model.candidate.minibatch] >= (1 - joint.TIE) * fastest
    # Workers and servers: the most throughput or the fewest GPUs, then the fewest servers that lose nothing.
    states = everything[found.model.candidate.minibatch]
    if problem.target.wants_most:
        assert chosen.samples_per_second >= max(state.samples_per_second for state in states) * (1 - 1e-6)
    else:
        assert chosen.workers == min(state.workers for state in states)
    leaner = [state for state in states if state.workers == chosen.workers and state.servers < chosen.servers]
    assert all(state.exposed > chosen.exposed + EPSILON * state.iteration * 0.01 for state in leaner)
