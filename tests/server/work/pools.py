"""Pools of real workers for tests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from takifugu.project.server_section import ServerSettings
from takifugu.server.access_rules import Actor
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import TASK_MODULES, Task

MODULES = (*TASK_MODULES, "tests.server.work.staged_tasks")
ANA = Actor("ana", "analyst", "a")
BO = Actor("bo", "analyst", "b")
OWNER = Actor("olga", "owner", "o")


def asked(name: str, actor: Actor = ANA, dataset: str | None = None, **options: Any) -> Task:
    return Task(name, dataset, actor, options)


def waiting_for(folder: Path, name: str, actor: Actor = ANA) -> Task:
    """A task that begins with the file NAME.begun and ends with the file ``end``."""
    begun, until = folder / f"{name}.begun", folder / "end"
    return asked("wait", actor, begun=str(begun), until=str(until))


async def there(path: Path) -> None:
    """Wait until a file is there."""
    while not path.exists():
        await asyncio.sleep(0.005)


@asynccontextmanager
async def pool_of(project: Path, **settings: Any) -> AsyncIterator[WorkPool]:
    pool = WorkPool(project, ServerSettings(**settings), modules=MODULES)
    try:
        yield pool
    finally:
        await pool.close()


def with_pool(project: Path, test: Callable[[WorkPool], Awaitable[None]], **settings: Any) -> None:
    """Run a test with a pool."""

    async def run() -> None:
        async with pool_of(project, **settings) as pool:
            await test(pool)

    asyncio.run(run())
