import pytest
from muster.settings import Settings
from pydantic import ValidationError


def test_each_field_can_come_from_the_environment_and_what_is_given_wins():
    environment = {"MUSTER_NAMESPACES": "a, b,", "MUSTER_WORKERS": "3", "MUSTER_LEADER_ELECT": "true", "HOME": "/"}
    settings = Settings.from_environment(environment, workers=5, kubeconfig=None)
    assert (settings.namespaces, settings.workers, settings.leader_elect) == (("a", "b"), 5, True)
    assert settings.kubeconfig is None


def test_an_empty_variable_is_as_good_as_none():
    assert Settings.from_environment({"MUSTER_WORKERS": "", "MUSTER_NAMESPACES": ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MUSTER_WORKERS", "0"),
        ("MUSTER_METRICS_PORT", "99999"),
        ("MUSTER_LOG_FORMAT", "xml"),
        ("MUSTER_WRITE_RATE", "-1"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_its_name(name, value):
    with pytest.raises(ValidationError, match=name.removeprefix("MUSTER_").lower()):
        Settings.from_environment({name: value})
