"""Waits for a query of SQLite, which runs in a thread."""

import asyncio

import aiosqlite


async def main():
    async with aiosqlite.connect(":memory:") as db:
        await db.execute("CREATE TABLE a (n INTEGER)")
        await db.executemany("INSERT INTO a VALUES (?)", [(1,), (2,)])
        async with db.execute("SELECT sum(n) FROM a") as rows:
            return await rows.fetchone()


assert asyncio.run(main()) == (3,)
