"""Runs a job at an interval, in the event loop."""

import asyncio

from apscheduler.schedulers.asyncio import AsyncIOScheduler

calls = []


async def main():
    scheduler = AsyncIOScheduler()
    scheduler.add_job(lambda: calls.append(1), "interval", seconds=0.05)
    scheduler.start()
    await asyncio.sleep(0.3)
    scheduler.shutdown()


asyncio.run(main())
assert len(calls) >= 2
