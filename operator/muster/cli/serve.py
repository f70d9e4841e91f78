"""`muster operator`."""

import os

from pydantic import ValidationError

from muster.cli.exits import Code, Exit
from muster.operator import StartError, run_operator
from muster.settings import Settings


def operator() -> None:
    """Run until told to stop."""
    try:
        settings = Settings.from_environment(os.environ)
    except ValidationError as error:
        wrong = "; ".join(f"MUSTER_{str(each['loc'][0]).upper()}: {each['msg']}" for each in error.errors())
        raise Exit(Code.USAGE, wrong) from None
    try:
        run_operator(settings)
    except StartError as error:
        raise Exit(Code.FAILED, str(error)) from None
