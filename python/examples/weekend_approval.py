"""An approval takes the weekend: the program ends on Friday in the middle of a call, and another
one goes on with it on Monday."""

import os
import subprocess
import sys
from pathlib import Path

import isolet

CODE = """
bills = [bill for bill in open_bills() if bill["amount"] > 100]
total = sum(bill["amount"] for bill in bills)
if approved(f"pay {len(bills)} bills, {total} EUR?"):
    for bill in bills:
        pay(bill["number"])
        print("paid", bill["number"])
"""
ANSWER, PAID = Path("answer"), Path("paid")


@isolet.tool(idempotent=True)
def open_bills() -> list[dict[str, int]]:
    """The bills that are to be paid."""
    return [{"number": number, "amount": 40 * number} for number in range(1, 6)]


@isolet.tool(idempotent=True)
def approved(question: str) -> bool:
    """Asks the boss."""
    if not ANSWER.exists():
        print("asked:", question, flush=True)
        # The weekend begins. A crash, an update or a reboot would do as well.
        os._exit(1)
    return ANSWER.read_text() == "yes"


@isolet.tool
def pay(number: int) -> None:
    """Pays a bill, which must not happen twice."""
    with PAID.open("a") as paid:
        paid.write(f"{number}\n")


TOOLS = [open_bills, approved, pay]

if sys.argv[1:] == ["friday"]:
    isolet.run(CODE, tools=TOOLS, journal="bills.journal")
else:
    subprocess.run([sys.executable, __file__, "friday"], check=False)
    ANSWER.write_text("yes")
    execution = isolet.resume("bills.journal", tools=TOOLS)
    print(execution.stdout, end="")
    print("paid once each:", PAID.read_text().split())
