import pytest
from muster.cluster.errors import Conflict, NotFound, OldDefinition, Rejected, Throttled, Transient, from_response

QUOTA = 'pods "a-worker-3" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1'
WEBHOOK = 'Internal error occurred: failed calling webhook "check.example.com": connection refused'


@pytest.mark.parametrize(
    ("status", "body", "retry_after", "kind", "permanent"),
    [
        (404, {"reason": "NotFound", "message": "not found"}, None, NotFound, None),
        (409, {"reason": "AlreadyExists", "message": "exists"}, None, Conflict, None),
        (409, {"reason": "Conflict", "message": "object has been modified"}, None, Conflict, None),
        (422, {"reason": "Invalid", "message": "Pod is invalid"}, None, Rejected, True),
        (400, {"reason": "BadRequest", "message": "bad"}, None, Rejected, True),
        (403, {"reason": "Forbidden", "message": QUOTA}, None, Rejected, False),
        (500, {"reason": "InternalError", "message": WEBHOOK}, None, Rejected, False),
        (500, {"message": "etcdserver: request is too large"}, None, Rejected, True),
        (429, {"reason": "TooManyRequests", "message": "slow"}, "7", Throttled, None),
        (429, {}, None, Throttled, None),
        (503, {"message": "starting"}, "2", Throttled, None),
        (503, {}, None, Transient, None),
        (500, {"reason": "InternalError", "message": "etcd"}, None, Transient, None),
        (504, {"reason": "Timeout", "message": "timed out"}, None, Transient, None),
        (410, {"reason": "Expired", "message": "too old"}, None, Transient, None),
        (401, {"reason": "Unauthorized", "message": "Unauthorized"}, None, Transient, None),
    ],
)
def test_each_answer_is_an_error_that_the_caller_can_act_on(status, body, retry_after, kind, permanent):
    error = from_response(status, body, retry_after)
    assert type(error) is kind
    assert error.status == status
    assert str(error) == body.get("message", f"the API server answered {status}")
    assert getattr(error, "permanent", None) == permanent


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), (None, 1), ("0", 0.1), ("86400", 60), ("Wed, 21 Oct 2026 07:28:00 GMT", 1)],
)
def test_retry_after_is_obeyed_within_reason(header, seconds):
    error = from_response(429, {}, header)
    assert isinstance(error, Throttled)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("fields", "lacking"),
    [
        (".status.plan: field not declared in schema", "status.plan"),
        (
            "errors:\n  .status.plan.nodes: field not declared in schema\n"
            "  .status.chief: field not declared in schema",
            "status.plan.nodes, status.chief",
        ),
    ],
)
def test_a_status_that_the_definition_does_not_hold_names_what_to_apply_and_what_is_lacking(fields, lacking):
    message = f"failed to create typed patch object (ns/job; muster.dev/v1alpha1, Kind=TrainingJob): {fields}"
    error = from_response(500, {"message": message}, None)
    assert isinstance(error, OldDefinition)
    assert error.message == (
        "the cluster's CustomResourceDefinition trainingjobs.muster.dev is older than this operator: apply the "
        f"files of crds/ of the operator's release (it lacks {lacking})"
    )
