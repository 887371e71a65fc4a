"""Tries again until a call succeeds."""

from tenacity import retry, stop_after_attempt, wait_fixed

calls = []


@retry(stop=stop_after_attempt(3), wait=wait_fixed(0.01))
def call():
    calls.append(1)
    if len(calls) < 3:
        raise OSError("again")
    return "done"


assert call() == "done" and len(calls) == 3
