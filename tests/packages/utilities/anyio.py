"""Runs tasks in a group, with a limit of time."""

import anyio


async def main():
    done = []
    async with anyio.create_task_group() as group:
        for n in range(3):
            group.start_soon(lambda n: anyio.to_thread.run_sync(done.append, n), n)
    with anyio.move_on_after(0.05) as scope:
        await anyio.sleep(9)
    return sorted(done), scope.cancelled_caught


assert anyio.run(main) == ([0, 1, 2], True)
