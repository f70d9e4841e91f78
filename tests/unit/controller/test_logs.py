import json
import logging

import pytest
from muster import logs
from muster.logs import Subject, subject


@pytest.fixture(autouse=True)
def _restore():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    subject.set(None)


def test_json_lines_carry_the_job_they_are_about(capsys):
    logs.configure("json", "info")
    subject.set(Subject("team", "resnet", "u-1"))
    logging.getLogger("muster.test").info("created pod %s", "resnet-worker-0")
    line = json.loads(capsys.readouterr().err)
    assert {key: line[key] for key in ("namespace", "job", "uid", "level", "message")} == {
        "namespace": "team",
        "job": "resnet",
        "uid": "u-1",
        "level": "info",
        "message": "created pod resnet-worker-0",
    }


def test_an_exception_stays_on_its_json_line(capsys):
    logs.configure("json", "info")
    try:
        raise ValueError("boom\nboom")
    except ValueError:
        logging.getLogger("muster.test").exception("failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError: boom" in json.loads(line)["exception"]


def test_text_lines_name_the_job_too(capsys):
    logs.configure("text", "info")
    subject.set(Subject("team", "resnet", "u-1"))
    logging.getLogger("muster.test").warning("slow")
    assert "WARNING muster.test [team/resnet u-1] slow" in capsys.readouterr().err


def test_a_watch_that_goes_on_failing_says_so_at_once_and_then_once_a_minute(capsys):
    logs.configure("text", "info")
    kopf = logging.getLogger("kopf._cogs.clients.watching")
    for second in range(0, 130, 5):
        for path in ("pods", "trainingjobs"):
            text = (
                f"Request attempt #{second // 5 + 1} failed; will retry: GET https://api/{path}?watch=true -> refused"
            )
            record = kopf.makeRecord(kopf.name, logging.ERROR, "", 0, text, (), None)
            record.created = 1000.0 + second
            kopf.handle(record)
    kopf.error("something else")
    said = capsys.readouterr().err.splitlines()
    assert sum("/pods" in line for line in said) == 3
    assert sum("/trainingjobs" in line for line in said) == 3
    assert len(said) == 7


def test_what_libraries_chat_about_is_left_out(capsys):
    logs.configure("text", "info")
    logging.getLogger("kopf.objects").info("handling")
    assert capsys.readouterr().err == ""
