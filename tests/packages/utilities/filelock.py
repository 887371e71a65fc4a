"""Locks a file, and does not wait for a lock that is held."""

from filelock import FileLock, SoftFileLock, Timeout

with FileLock("a.lock") as lock:
    assert lock.is_locked
with SoftFileLock("b.lock"):
    try:
        SoftFileLock("b.lock", timeout=0).acquire()
        raise SystemExit("two have the lock")
    except Timeout:
        pass
