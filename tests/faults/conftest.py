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
    await asyncio.to_thread(
        api_server.kubectl, "wait", "--for=condition=Established", "crd/trainingjobs.muster.dev", "--timeout=30s"
    )
    made = Lives(api_server, tmp_path)
    yield made
    await made.end()
