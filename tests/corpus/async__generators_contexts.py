"""Async generators, comprehensions, iterators and context managers, contextvars across tasks, awaitable objects."""
import asyncio
import contextlib
import contextvars

trace = []


async def ticks(count, name="t"):
    try:
        for n in range(count):
            await asyncio.sleep(0)
            yield n
    finally:
        trace.append(f"{name} closed")


class Countdown:
    """The async iterator protocol by hand."""

    def __init__(self, start):
        self.current = start

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.current == 0:
            raise StopAsyncIteration
        await asyncio.sleep(0)
        self.current -= 1
        return self.current + 1


class Deferred:
    """An awaitable object."""

    def __init__(self, value):
        self.value = value

    def __await__(self):
        trace.append("suspending")
        yield from asyncio.sleep(0).__await__()
        return self.value


class Session:
    def __init__(self, name):
        self.name = name

    async def __aenter__(self):
        await asyncio.sleep(0)
        trace.append(f"+{self.name}")
        return self

    async def __aexit__(self, kind, value, traceback):
        await asyncio.sleep(0)
        trace.append(f"-{self.name}:{kind.__name__ if kind else None}")
        return kind is KeyError


@contextlib.asynccontextmanager
async def lease(pool):
    item = pool.pop()
    try:
        yield item
    finally:
        pool.append(item)
        trace.append(f"returned {item}")


def flush():
    shown = list(trace)
    trace.clear()
    return shown


async def iteration():
    print([n async for n in ticks(5) if n % 2 == 0], {n: n * n async for n in Countdown(3)}, flush())
    print([await Deferred(n) for n in range(2)], {await Deferred("x") async for _ in ticks(1)}, flush())
    async for n in ticks(2):
        print("tick", n)
    else:
        print("loop finished", flush())
    doubled = (n * 2 async for n in ticks(3))
    print(await anext(doubled), [n async for n in doubled], await anext(doubled, "default"))
    async with contextlib.aclosing(ticks(100, "early")) as source:
        async for n in source:
            if n == 2:
                break
    print(flush())


async def two_way():
    async def echo():
        received = None
        while received != "stop":
            try:
                received = yield f"got {received}"
            except ValueError as error:
                received = f"error {error}"

    talk = echo()
    print(await talk.asend(None), await talk.asend("hi"), await talk.athrow(ValueError("oops")))
    try:
        await talk.asend("stop")
    except StopAsyncIteration:
        print("ended")
    unfinished = echo()
    await anext(unfinished)
    await unfinished.aclose()
    print([item async for item in unfinished])


async def managing():
    async with Session("a") as a, Session("b"):
        trace.append(a.name)
    async with Session("c"):
        raise KeyError("swallowed")
    try:
        async with Session("d"):
            raise ValueError("through")
    except ValueError as error:
        trace.append(str(error))
    print(flush())
    pool = ["one", "two"]
    async with lease(pool) as first, lease(pool) as second:
        print(first, second, pool)
    print(pool, flush())
    async with contextlib.AsyncExitStack() as stack:
        for name in "xy":
            await stack.enter_async_context(Session(name))
        stack.push_async_callback(asyncio.sleep, 0)
        stack.callback(trace.append, "sync callback")
    print(flush())


request = contextvars.ContextVar("request", default="none")


async def handle(name, turns):
    token = request.set(name)
    seen = []
    for _ in range(turns):
        await asyncio.sleep(0)
        seen.append(request.get())
    child = await asyncio.create_task(inherit())
    request.reset(token)
    return seen, child, request.get()


async def inherit():
    inherited = request.get()
    request.set("changed in the child")
    return inherited


async def contexts():
    request.set("outer")
    for result in await asyncio.gather(handle("r1", 2), handle("r2", 3)):
        print(result)
    print("unchanged here:", request.get())
    copy = contextvars.copy_context()
    print(copy.run(lambda: (request.set("in copy"), request.get())[1]), request.get(), copy[request])
    task = asyncio.create_task(inherit(), context=copy)
    print(await task, copy[request])


async def main():
    await iteration()
    await two_way()
    await managing()
    await contexts()


asyncio.run(main())
