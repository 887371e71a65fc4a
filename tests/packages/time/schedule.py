"""Runs a job again and again."""

import time

import schedule

calls = []
schedule.every(0.01).seconds.do(calls.append, 1)
for _ in range(5):
    schedule.run_pending()
    time.sleep(0.02)
assert len(calls) >= 3
