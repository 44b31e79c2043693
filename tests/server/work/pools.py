"""Pools of real workers for tests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from takifugu.project.server_section import ServerSettings
from takifugu.server.access_rules import Actor
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import TASK_MODULES, Task

STAGED = ("tests.server.work.staged_tasks",)
NO_PROJECT = Path("no project")  # staged tasks need none
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
async def pool_of(
    project: Path = NO_PROJECT, modules: Sequence[str] = STAGED, **settings: Any
) -> AsyncIterator[WorkPool]:
    pool = WorkPool(project, ServerSettings(**settings), modules=modules)
    try:
        yield pool
    finally:
        await pool.close()


Test = Callable[[WorkPool], Awaitable[None]]


def with_pool(test: Test, project: Path | None = None, **settings: Any) -> None:
    """Run a test with a pool of its own: of staged tasks, and of a project's if it is given."""

    async def run() -> None:
        modules = STAGED if project is None else (*TASK_MODULES, *STAGED)
        async with pool_of(project or NO_PROJECT, modules, **settings) as pool:
            await test(pool)

    asyncio.run(run())


class SharedPools:
    """Pools of staged tasks, one for each number of workers, which tests use one after another."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)  # workers end with their thread
        self._thread.start()
        self._pools: dict[int, WorkPool] = {}

    def run(self, test: Test, workers: int = 2) -> None:
        """Run a test with a pool that others have used: its workers may have started already."""

        async def tried() -> None:
            if workers not in self._pools:
                settings = ServerSettings(workers=workers)
                self._pools[workers] = WorkPool(NO_PROJECT, settings, modules=STAGED)
            await test(self._pools[workers])

        asyncio.run_coroutine_threadsafe(tried(), self._loop).result()

    def close(self) -> None:
        """End every worker."""

        async def closed() -> None:
            for pool in self._pools.values():
                await pool.close()

        asyncio.run_coroutine_threadsafe(closed(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
