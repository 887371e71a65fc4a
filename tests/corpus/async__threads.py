# Threads, pools, locks and queues, as far as their order is the same everywhere.
import asyncio
import concurrent.futures as futures
import contextvars
import queue
import threading
from multiprocessing.pool import ThreadPool


def square(n):
    if n == 7:
        raise ValueError("seven")
    return n * n


with futures.ThreadPoolExecutor(max_workers=4, thread_name_prefix="worker") as pool:
    print(list(pool.map(square, range(7))))
    print(sorted(f.result() for f in futures.as_completed([pool.submit(square, n) for n in range(5)])))
    failing = pool.submit(square, 7)
    print(repr(failing.exception()), failing.done(), failing.cancelled())
    done, not_done = futures.wait([pool.submit(square, n) for n in range(3)])
    print(len(done), len(not_done))
    print(pool.submit(lambda: threading.current_thread().name.startswith("worker")).result())
    try:
        list(pool.map(square, [6, 7, 8]))
    except ValueError as error:
        print("map:", error)
try:
    pool.submit(square, 1)
except RuntimeError as error:
    print(error)

initialized = []
with futures.ThreadPoolExecutor(1, initializer=initialized.append, initargs=("ready",)) as pool:
    print(pool.submit(len, initialized).result(), initialized)

# A queue between producers and consumers.
jobs, results = queue.Queue(maxsize=2), queue.SimpleQueue()


def consume():
    while (job := jobs.get()) is not None:
        results.put(job * 10)
        jobs.task_done()
    jobs.task_done()


consumers = [threading.Thread(target=consume, name=f"consumer-{n}") for n in range(3)]
for thread in consumers:
    thread.start()
for n in range(20):
    jobs.put(n)
for _ in consumers:
    jobs.put(None)
jobs.join()
for thread in consumers:
    thread.join()
print(sorted(results.get() for _ in range(20)), results.empty())
print([thread.is_alive() for thread in consumers], consumers[0].name, consumers[0].daemon)
try:
    jobs.get(timeout=0.01)
except queue.Empty:
    print("empty")
try:
    consumers[0].start()
except RuntimeError as error:
    print(error)

# Locks, conditions, semaphores, barriers, events.
total, lock = 0, threading.Lock()


def add():
    global total
    for _ in range(100):
        with lock:
            total += 1


threads = [threading.Thread(target=add) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(total, lock.locked(), lock.acquire(blocking=False), lock.acquire(timeout=0.01), lock.locked())
lock.release()
for wrong in (lambda: lock.release(), lambda: lock.acquire(False, 1), lambda: threading.RLock().release()):
    try:
        wrong()
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, error)

reentrant = threading.RLock()
with reentrant, reentrant:
    other = []
    thread = threading.Thread(target=lambda: other.append(reentrant.acquire(blocking=False)))
    thread.start()
    thread.join()
    print(other)

condition, turn, said = threading.Condition(), 0, []


def speak(n):
    global turn
    with condition:
        condition.wait_for(lambda: turn == n)
        said.append(n)
        turn += 1
        condition.notify_all()


threads = [threading.Thread(target=speak, args=(n,)) for n in (3, 1, 0, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(said)

barrier, order = threading.Barrier(3, action=lambda: order.append("all")), []


def meet():
    barrier.wait()
    order.append("past")


threads = [threading.Thread(target=meet) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(order)

semaphore, event = threading.BoundedSemaphore(1), threading.Event()
print(semaphore.acquire(), semaphore.acquire(blocking=False), event.wait(0.01), event.is_set())
semaphore.release()
timer = threading.Timer(0.01, event.set)
timer.start()
print(event.wait(10), timer.is_alive() in (True, False))
timer.join()

# What each thread has of its own.
local, variable = threading.local(), contextvars.ContextVar("variable", default="none")
local.name = "main"
variable.set("main")
seen = []


class Counted(threading.local):
    made = 0

    def __init__(self, start):
        type(self).made += 1
        self.count = start


counted = Counted(5)
counted.count += 1


def look():
    seen.append((getattr(local, "name", None), variable.get(), counted.count))
    local.name = "thread"
    seen.append((local.name, threading.current_thread() is threading.main_thread()))


thread = threading.Thread(target=look)
thread.start()
thread.join()
print(seen, local.name, variable.get(), counted.count, Counted.made)
print(len({threading.get_ident(), thread.ident}), threading.current_thread().name)
print(threading.active_count(), [thread.name for thread in threading.enumerate()])


# asyncio beside threads.
async def main():
    loop = asyncio.get_running_loop()
    print(await asyncio.gather(*[asyncio.to_thread(square, n) for n in range(4)]))
    print(await loop.run_in_executor(None, square, 5))
    print(await asyncio.to_thread(variable.get))
    thread_result = []

    def call_back():
        thread_result.append(asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "slept"), loop).result())

    thread = threading.Thread(target=call_back)
    thread.start()
    while thread.is_alive():
        await asyncio.sleep(0.001)
    print(thread_result)


asyncio.run(main())
answers = []
thread = threading.Thread(target=lambda: answers.append(asyncio.run(asyncio.sleep(0.001, "in a thread"))))
thread.start()
thread.join()
print(answers)

with ThreadPool(3) as pool:
    print(pool.map(square, range(6)), pool.apply(square, (3,)), pool.starmap(pow, [(2, 3), (3, 2)]))
    print(sorted(pool.imap_unordered(square, range(5))), pool.apply_async(square, (4,)).get())

threading.excepthook = lambda args: print("hook:", args.exc_type.__name__, args.exc_value)
thread = threading.Thread(target=square, args=(7,))
thread.start()
thread.join()
print("end")
