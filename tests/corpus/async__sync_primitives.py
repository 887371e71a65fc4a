"""asyncio locks, events, conditions, semaphores and barriers; a rate-limited pipeline and a tiny actor system."""
import asyncio


async def locks():
    lock, order = asyncio.Lock(), []

    async def critical(name):
        order.append(f"{name} waits")
        async with lock:
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(*(critical(n) for n in "abc"))
    inside = [entry for entry in order if "waits" not in entry]
    print(inside, lock.locked())
    balance = {"safe": 0, "racy": 0}

    async def deposit(kind):
        async with lock if kind == "safe" else asyncio.Lock():
            before = balance[kind]
            await asyncio.sleep(0)
            balance[kind] = before + 1

    await asyncio.gather(*(deposit(k) for k in ("safe", "racy") for _ in range(10)))
    print(balance)


async def events():
    ready, log = asyncio.Event(), []

    async def waiter(n):
        await ready.wait()
        log.append(f"woke {n}")

    tasks = [asyncio.create_task(waiter(n)) for n in range(3)]
    await asyncio.sleep(0)
    log.append("setting")
    ready.set()
    await asyncio.gather(*tasks)
    print(log, ready.is_set())
    ready.clear()
    print(ready.is_set())


async def conditions():
    condition, buffer, taken = asyncio.Condition(), [], []

    async def take(name):
        async with condition:
            await condition.wait_for(lambda: buffer)
            taken.append((name, buffer.pop(0)))

    takers = [asyncio.create_task(take(n)) for n in ("p", "q")]
    await asyncio.sleep(0)
    async with condition:
        buffer.extend([1, 2])
        condition.notify_all()
    await asyncio.gather(*takers)
    print(taken)


async def semaphores():
    gate, running, peak = asyncio.Semaphore(3), 0, 0

    async def job(n):
        nonlocal running, peak
        async with gate:
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0)
            running -= 1
            return n * n

    print(await asyncio.gather(*(job(n) for n in range(10))), "peak", peak)
    bounded = asyncio.BoundedSemaphore(1)
    try:
        bounded.release()
    except ValueError as error:
        print("released too often:", type(error).__name__)


async def barriers():
    barrier, log = asyncio.Barrier(3), []

    async def runner(name):
        log.append(f"{name} arrives")
        position = await barrier.wait()
        log.append("through")
        return position

    positions = await asyncio.gather(*(runner(n) for n in "xyz"))
    print(log, sorted(positions), barrier.parties, barrier.broken)


async def pipeline():
    """Three stages joined by queues; None closes each one down."""
    first, second, results = asyncio.Queue(2), asyncio.Queue(2), []

    async def produce():
        for word in "the cat sat on the mat".split():
            await first.put(word)
        await first.put(None)

    async def transform():
        while (word := await first.get()) is not None:
            await second.put((word, len(word)))
        await second.put(None)

    async def collect():
        while (item := await second.get()) is not None:
            results.append(item)

    await asyncio.gather(produce(), transform(), collect())
    print(results)


class Actor:
    def __init__(self):
        self.inbox = asyncio.Queue()
        self.state = {}

    async def run(self):
        while True:
            match await self.inbox.get():
                case ("set", key, value):
                    self.state[key] = value
                case ("get", key, reply):
                    reply.set_result(self.state.get(key))
                case ("fail", reply):
                    reply.set_exception(LookupError("asked to fail"))
                case "stop":
                    return len(self.state)

    async def ask(self, kind, *args):
        reply = asyncio.get_running_loop().create_future()
        await self.inbox.put((kind, *args, reply))
        return await reply


async def actors():
    actor = Actor()
    running = asyncio.create_task(actor.run())
    await actor.inbox.put(("set", "colour", "blue"))
    await actor.inbox.put(("set", "size", 4))
    print(await asyncio.gather(actor.ask("get", "colour"), actor.ask("get", "size"), actor.ask("get", "nothing")))
    try:
        await actor.ask("fail")
    except LookupError as error:
        print("reply raised:", error)
    await actor.inbox.put("stop")
    print("actor ended with", await running)


async def debounce():
    """The clock moves forward and sleeps are ordered."""
    loop = asyncio.get_running_loop()
    start, order = loop.time(), []
    await asyncio.gather(*(sleeper(order, n) for n in (3, 1, 2)))
    elapsed = loop.time() - start
    print(order, 0.08 < elapsed < 20)


async def sleeper(order, n):
    await asyncio.sleep(n * 0.03)
    order.append(n)


async def main():
    for part in (locks, events, conditions, semaphores, barriers, pipeline, actors, debounce):
        print("--", part.__name__)
        await part()
    return "main's value"


print(asyncio.run(main()))


async def again():
    return await asyncio.gather(asyncio.sleep(0, "second run"))


print(asyncio.run(again()))
