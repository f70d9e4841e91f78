"""What each framework expects of its environment, one module a framework: a pure function of a member and its
cluster.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from muster.api.job import Framework
from muster.api.status import Plan
from muster.jobs.contracts import generic, paddle, pslite, pytorch, tensorflow
from muster.jobs.members import Cluster, Member
from muster.jobs.model import Role

Contract = Callable[[Member, Cluster], dict[str, str]]

_CONTRACTS: Mapping[Framework, Contract] = MappingProxyType(
    {
        Framework.GENERIC: generic.nothing,
        Framework.PYTORCH: pytorch.environment,
        Framework.TENSORFLOW: tensorflow.environment,
        Framework.MXNET: pslite.mxnet,
        Framework.BYTEPS: pslite.byteps,
        Framework.PADDLE: paddle.environment,
    }
)
_WORKSPACE: Mapping[Framework, Callable[[int], dict[str, str]]] = MappingProxyType(
    {Framework.PYTORCH: pytorch.workspace, Framework.TENSORFLOW: tensorflow.workspace}
)
_REPLACEABLE: Mapping[Framework, frozenset[Role]] = MappingProxyType({Framework.TENSORFLOW: tensorflow.REPLACEABLE})


def environment(
    framework: Framework, member: Member, cluster: Cluster, attempt: int, plan: Plan | None
) -> dict[str, str]:
    """All that a member's training container is told. Without a plan (while profiling) the mini-batch is left to the
    profiler.
    """
    env = generic.environment(member, cluster, attempt)
    env |= _CONTRACTS[framework](member, cluster)
    if plan is not None:
        env |= generic.batch(plan.mini_batch.value)
    if plan is not None and plan.convolution is not None and member.role in (Role.WORKER, Role.CHIEF):
        limit = plan.convolution.workspace_limit_bytes
        env |= generic.workspace(limit) | _WORKSPACE.get(framework, generic.no_workspace)(limit)
    return env


def replaceable(framework: Framework) -> frozenset[Role]:
    """Roles of which one lost pod is replaced alone. Any other lost pod ends the attempt: the others cannot go on
    without it.
    """
    return _REPLACEABLE.get(framework, frozenset())
