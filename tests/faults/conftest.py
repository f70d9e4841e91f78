import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from muster.api import crd
from support.lives import Lives


@pytest.fixture
async def lives(api_server: Any, tmp_path: Path) -> AsyncIterator[Lives]:
    await asyncio.to_thread(api_server.apply, crd.generate())
    made = Lives(api_server, tmp_path)
    await made.until_served()
    yield made
    await made.end()
