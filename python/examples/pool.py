"""A pool of 64 sessions in one event loop, each with its own variables, all with a tool.

Each of 64 customers has a session, as in a service where agents keep their state between
requests. Their code runs at the same time, and calls a coroutine of this program. The code of one
customer never ends: it is stopped, and the others do not notice.

There is no model here, and the code is written down below. No key or network is needed.

    pip install target/wheels/isolet-*.whl    # of `cargo xtask wheel`, until it is published
    python examples/pool.py
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import isolet
import isolet.aio

CUSTOMERS = 64
ROUNDS = 3
STUCK = 13
"""The customer whose code never ends in the second round."""

RATES = {"EUR": 1.0, "NOK": 0.25, "GBP": 1.25, "JPY": 0.0625}

FIRST = "balance, orders = 0.0, []"
ROUND = """\
for currency, amount in basket:
    balance += amount * rate(currency)
    orders.append(amount)
(customer, len(orders), balance)
"""


@dataclass
class Rates:
    """The functions that the guests get, and what they have done."""

    calls: int = 0
    asked: set[str] = field(default_factory=set[str])

    async def rate(self, currency: str) -> float:
        """Returns what a unit of a currency is worth in euros."""
        self.calls += 1
        self.asked.add(currency)
        await asyncio.sleep(0)  # a real one asks a database, while other sessions go on
        return RATES[currency]


def basket(customer: int, turn: int) -> list[tuple[str, int]]:
    """Returns what a customer orders in a round: currencies and amounts."""
    currencies = list(RATES)
    return [(currencies[(customer + at) % 4], customer * 16 + turn + at) for at in range(3)]


async def serve(sandbox: isolet.aio.Sandbox, customer: int) -> tuple[int, float]:
    """Runs the rounds of a customer in one session. Returns the number of orders and their sum."""
    async with sandbox.session(inputs={"customer": customer}) as session:
        (await session.run(FIRST)).raise_for_error()
        count, balance = 0, 0.0
        for turn in range(ROUNDS):
            if customer == STUCK and turn == 1:
                stuck = await session.run("while True: pass", timeout=0.5)
                assert stuck.status == "timeout", stuck
                assert session.alive, "a loop in Python is interrupted, and the session stays"
            execution = await session.run(ROUND, inputs={"basket": basket(customer, turn)})
            number, count, balance = execution.raise_for_error().value
            assert number == customer, "the sessions share nothing"
        return count, balance


def expected(customer: int) -> tuple[int, float]:
    """Computes the same here."""
    orders = [order for turn in range(ROUNDS) for order in basket(customer, turn)]
    return len(orders), sum(amount * RATES[currency] for currency, amount in orders)


async def main() -> None:
    rates = Rates()
    # Whoever is stopped has `grace` seconds to end by itself, before its session is killed.
    limits = isolet.Limits(run_time=60, grace=20, memory_bytes=256 << 20)
    sandbox = isolet.aio.Sandbox(tools=[rates.rate], limits=limits)
    served = await asyncio.gather(*(serve(sandbox, each) for each in range(CUSTOMERS)))
    assert served == [expected(each) for each in range(CUSTOMERS)]
    assert rates.calls == CUSTOMERS * ROUNDS * 3
    assert rates.asked == set(RATES)
    print(f"{len(served)} sessions, {rates.calls} calls of rate(), all results as expected")
    print(f"customer {STUCK} was stopped once, and has {served[STUCK][0]} orders like all others")


if __name__ == "__main__":
    asyncio.run(main())
