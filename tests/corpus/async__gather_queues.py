"""asyncio: gather, tasks, cancellation, queues with producers and consumers, as_completed and wait, by order not by clock."""
import asyncio

trace = []


async def worker(name, turns, result=None, fail=None):
    for turn in range(turns):
        trace.append(f"{name}{turn}")
        await asyncio.sleep(0)
    if fail:
        raise fail
    return result or name


def flush():
    text = " ".join(trace)
    trace.clear()
    return text


async def gathering():
    print(await asyncio.gather(worker("a", 2), worker("b", 3), worker("c", 1)), "|", flush())
    results = await asyncio.gather(worker("d", 1), worker("e", 1, fail=ValueError("bad")), return_exceptions=True)
    print([repr(r) for r in results], "|", flush())
    try:
        await asyncio.gather(worker("f", 1, fail=KeyError("k")), worker("g", 3))
    except KeyError as error:
        await asyncio.sleep(0.01)
        print("gather raised", error, "but the other went on |", flush())


async def cancelling():
    async def patient(log):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            log.append(f"cancelled {error.args}")
            await asyncio.sleep(0)
            log.append("cleaned up")
            raise
        finally:
            log.append("finally")

    log = []
    task = asyncio.create_task(patient(log), name="patient")
    await asyncio.sleep(0)
    print(task.get_name(), task.done(), task.cancel("stop now"), task.cancelling())
    try:
        await task
    except asyncio.CancelledError:
        print(task.cancelled(), log)

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return "refused to die"

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    task.cancel()
    print(await task, task.cancelled())
    shielded = asyncio.create_task(worker("s", 3, "survived"))
    waiter = asyncio.ensure_future(asyncio.shield(shielded))
    await asyncio.sleep(0)
    waiter.cancel()
    print(await shielded, waiter.cancelled(), flush())


async def queueing():
    queue = asyncio.Queue(maxsize=2)
    done = []

    async def produce(name, count):
        for n in range(count):
            await queue.put((name, n))

    async def consume():
        while True:
            item = await queue.get()
            await asyncio.sleep(0)
            done.append(item)
            queue.task_done()

    consumers = [asyncio.create_task(consume()) for _ in range(2)]
    await asyncio.gather(produce("x", 4), produce("y", 3))
    await queue.join()
    for consumer in consumers:
        consumer.cancel()
    ended = await asyncio.gather(*consumers, return_exceptions=True)
    print(sorted(done), queue.empty(), [type(e).__name__ for e in ended])
    try:
        queue.get_nowait()
    except asyncio.QueueEmpty as error:
        print(type(error).__name__)
    try:
        for n in range(3):
            queue.put_nowait(n)
    except asyncio.QueueFull as error:
        print(type(error).__name__, queue.qsize(), queue.full())
    priority, stack = asyncio.PriorityQueue(), asyncio.LifoQueue()
    for item in (3, 1, 2):
        await priority.put(item)
        await stack.put(item)
    print([await priority.get() for _ in range(3)], [await stack.get() for _ in range(3)])


async def waiting():
    async def delayed(seconds, value):
        await asyncio.sleep(seconds)
        return value

    order = []
    for future in asyncio.as_completed([delayed(0.12, "slow"), delayed(0.01, "fast"), delayed(0.06, "middle")]):
        order.append(await future)
    print("as_completed:", order)
    tasks = {asyncio.create_task(delayed(s, s)) for s in (0.01, 5)}
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    print("first:", [t.result() for t in done], "pending:", len(pending))
    for task in pending:
        task.cancel()
    done, pending = await asyncio.wait(pending)
    print("rest cancelled:", [t.cancelled() for t in done], len(pending))


async def callbacks():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    seen = []
    future.add_done_callback(lambda f: seen.append(f.result()))
    loop.call_soon(seen.append, "soon")
    loop.call_later(0.01, future.set_result, "later")
    print(await future, future.done())
    await asyncio.sleep(0)
    print(seen, asyncio.current_task() in asyncio.all_tasks())
    failed = loop.create_future()
    failed.set_exception(LookupError("none"))
    print(repr(failed.exception()), failed.cancel())
    try:
        future.set_result("again")
    except asyncio.InvalidStateError as error:
        print(type(error).__name__)


async def main():
    for part in (gathering, cancelling, queueing, waiting, callbacks):
        print("--", part.__name__)
        await part()


asyncio.run(main())
