# Threads, tasks and waits.

# %% a loop without an end
while True:
    pass

# %% a loop that catches everything
while True:
    try:
        while True:
            pass
    except BaseException:
        pass

# %% an hour of sleep
import time
time.sleep(3600)

# %% a lock that nobody releases
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()

# %% a thread that never ends
import threading
def run():
    while True:
        pass
t = threading.Thread(target=run)
t.start()
t.join()

# %% ten thousand threads
import threading, time
threads = [threading.Thread(target=time.sleep, args=(3600,)) for i in range(10_000)]
for t in threads:
    t.start()

# %% two threads that wait for each other
import threading
a, b = threading.Lock(), threading.Lock()
barrier = threading.Barrier(2)
def run(x, y):
    with x:
        barrier.wait()
        with y:
            pass
t = threading.Thread(target=run, args=(a, b))
t.start()
run(b, a)

# %% a task that waits for itself
import asyncio
async def main():
    await asyncio.Event().wait()
asyncio.run(main())

# %% tasks without an end
import asyncio
async def again():
    asyncio.ensure_future(again())
    await asyncio.sleep(0)
async def main():
    await again()
    while True:
        await asyncio.sleep(0)
asyncio.run(main())

# %% a queue that nobody fills
import queue
queue.Queue().get()

# %% input that nobody types
input()

# %% a finally that never ends
try:
    while True:
        pass
finally:
    while True:
        pass

# %% a process pool
import concurrent.futures
with concurrent.futures.ProcessPoolExecutor() as pool:
    list(pool.map(abs, range(10)))
