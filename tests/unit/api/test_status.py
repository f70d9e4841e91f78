import pytest
from muster.api.status import ReplicaStatus


@pytest.mark.parametrize(
    ("desired", "ready", "succeeded", "summary"),
    [(0, 0, 0, "0/0"), (3, 2, 0, "2/3"), (3, 1, 1, "2/3"), (3, 0, 3, "3/3"), (2, 0, 3, "2/2")],
)
def test_a_role_s_column_counts_pods_that_are_ready_or_done(desired, ready, succeeded, summary):
    assert ReplicaStatus(desired=desired, ready=ready, succeeded=succeeded).summary == summary
