"""asyncio: TaskGroup with failures and nesting, timeout scopes, wait_for, and except* over what comes out."""
import asyncio


async def step(name, seconds=0.0, fail=None, log=None):
    try:
        await asyncio.sleep(seconds)
        if fail:
            raise fail
        return name.upper()
    except asyncio.CancelledError:
        if log is not None:
            log.append(f"{name} cancelled")
        raise


async def groups():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(step(n), name=n) for n in ("a", "b", "c")]
        group.create_task(step("d"))
    print([t.result() for t in tasks], tasks[0].get_name())

    log = []
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(step("slow", 30, log=log))
            group.create_task(step("bad", 0.01, ValueError("from bad")))
            group.create_task(step("slower", 60, log=log))
    except* ValueError as errors:
        print("group failed:", [str(e) for e in errors.exceptions], sorted(log))

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(step("x", 0, KeyError("k")))
            group.create_task(step("y", 0, TypeError("t")))
            raise RuntimeError("body")
    except* RuntimeError as errors:
        print("body:", [str(e) for e in errors.exceptions])
    except* (KeyError, TypeError) as errors:
        print("tasks:", sorted(type(e).__name__ for e in errors.exceptions))

    try:
        async with asyncio.TaskGroup() as outer:
            async with asyncio.TaskGroup() as inner:
                inner.create_task(step("deep", 0, OSError("disk")))
            outer.create_task(step("never"))
    except ExceptionGroup as error:
        nested = error.exceptions[0]
        print("nested:", type(nested).__name__, repr(nested.exceptions[0]))

    children = []

    async def spawn(group, depth):
        children.append(depth)
        if depth < 3:
            for _ in range(2):
                group.create_task(spawn(group, depth + 1))

    async with asyncio.TaskGroup() as group:
        group.create_task(spawn(group, 0))
    print("grown inside:", sorted(children))


async def timeouts():
    try:
        async with asyncio.timeout(0.01) as scope:
            await asyncio.sleep(30)
    except TimeoutError as error:
        print("timeout:", type(error).__name__, scope.expired())
    async with asyncio.timeout(30) as scope:
        await asyncio.sleep(0)
    print("in time:", scope.expired())
    async with asyncio.timeout(0.01) as scope:
        scope.reschedule(asyncio.get_running_loop().time() + 30)
        await asyncio.sleep(0.03)
    print("rescheduled:", scope.expired())
    async with asyncio.timeout(None) as scope:
        await asyncio.sleep(0)
    print("no limit:", scope.when())
    try:
        async with asyncio.timeout(30):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(30)
    except TimeoutError:
        print("the inner one fired")
    caught = []
    try:
        async with asyncio.timeout(0.01):
            try:
                await asyncio.sleep(30)
            except TimeoutError:
                caught.append("TimeoutError inside")
            except asyncio.CancelledError:
                caught.append("CancelledError inside")
                raise
    except TimeoutError:
        caught.append("TimeoutError outside")
    print(caught)


async def waits():
    print(await asyncio.wait_for(step("quick"), 30))
    log = []
    try:
        await asyncio.wait_for(step("long", 30, log=log), timeout=0.01)
    except asyncio.TimeoutError as error:
        print(type(error).__name__, log, asyncio.TimeoutError is TimeoutError)
    try:
        await asyncio.wait_for(step("raises", 0, ZeroDivisionError("own error")), 30)
    except ZeroDivisionError as error:
        print("own error kept:", error)


async def race(*names):
    """First result wins, the others are cancelled and awaited."""
    log = []
    tasks = [asyncio.create_task(step(n, 0.01 if n == "hare" else 30, log=log)) for n in names]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return [t.result() for t in done], sorted(log)


async def retry(function, attempts):
    for attempt in range(1, attempts + 1):
        try:
            async with asyncio.timeout(0.02):
                return await function(attempt)
        except (TimeoutError, ValueError) as error:
            print("attempt", attempt, type(error).__name__)
    return None


async def unstable(attempt):
    match attempt:
        case 1:
            await asyncio.sleep(30)
        case 2:
            raise ValueError("not yet")
        case n:
            return f"worked at {n}"


async def main():
    await groups()
    await timeouts()
    await waits()
    print(await race("tortoise", "hare", "snail"))
    print(await retry(unstable, 4))


asyncio.run(main())
