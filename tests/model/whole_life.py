"""Any job through a whole life in the small honest world: suspension, profile, a failure, success, the end of its time.

Whatever its spec says, no step may raise, every status must be one that the API server takes, and every pod must be
JSON.
"""

import json

from model.world import World, report
from muster.api.labels import MANAGED_BY
from muster.api.report import Report
from muster.api.status import ConditionType as Is
from muster.api.status import TrainingJobStatus
from muster.jobs import conditions
from muster.jobs.model import Action, CreatePod, Job, Role
from support.status import STATUS


class Witness(World):
    """A world that looks at all that is written."""

    def _write(self, status: TrainingJobStatus) -> None:
        if status.plan != self.status.plan or conditions.is_over(status) or not self.writes:
            STATUS.validate(status.dump())
        super()._write(status)

    def act(self, action: Action) -> None:
        if isinstance(action, CreatePod):
            json.dumps(action.body, allow_nan=False)
        super().act(action)

    def end_trainers(self, code: int) -> None:
        """Ends the pods whose success is the job's."""
        for name, pod in list(self.pods.items()):
            if pod.role in (Role.WORKER, Role.CHIEF, Role.PROFILER) and pod.phase == "Running":
                self.exit(name, code)


def whole_life(job: Job, profile: Report | None = None) -> World:
    """The world at the job's end, which has come: Complete, Failed, or nothing at all for somebody else's job."""
    world = Witness(spec=job.spec, spec_error=job.spec_error, name=job.name, profile=profile or report())
    world.settle()
    if job.spec is not None and job.spec.run_policy.managed_by != MANAGED_BY:
        assert world.status == TrainingJobStatus()
        return world
    if job.spec is not None and job.spec.run_policy.suspend:
        assert world.pods == {}
        world.policy(suspend=False)
    if job.spec is not None and job.spec.profile.config_map_name is not None:
        world.config_maps[job.spec.profile.config_map_name] = {}
    for code in (0, 1, 0):  # the profile, a failure, and the end
        world.tick(1000)
        world.settle()
        world.run()
        world.settle()
        world.end_trainers(code)
        world.settle()
    world.tick(2 * 10**8)
    world.settle()
    over = [kind for kind in (Is.COMPLETE, Is.FAILED) if conditions.is_true(world.status, kind)]
    assert len(over) == 1, world.status.conditions
    assert world.status.completion_time is not None
    assert world.condition(over[0]).message
    return world
