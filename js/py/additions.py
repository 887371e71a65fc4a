"""What CPython has by libraries that are not here: key derivation, a thread's processor time,
`exit` at the end. What it leaves to the machine: how deep calls may go.
"""

import _sitebuiltins
import hashlib
import operator
import sys
import time

# Calls within calls, with any recursion limit: an interrupt has to end so many, and what they leave
# has to fit, within the time that a deadline gives.
DEEPEST = 500_000

recursion_limit = None  # what the guest has set, if it is more


def install():
    """Puts it in place."""
    hashlib.pbkdf2_hmac = pbkdf2_hmac
    hashlib.scrypt = scrypt
    hashlib.__all__ += ("pbkdf2_hmac", "scrypt")
    time.thread_time = thread_time
    time.thread_time_ns = thread_time_ns
    time.get_clock_info = clock_info(time.get_clock_info)
    _sitebuiltins.Quitter.__call__ = leave
    sys.setrecursionlimit = set_recursion_limit(sys.setrecursionlimit)
    sys.getrecursionlimit = get_recursion_limit(sys.getrecursionlimit)


def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """Password based key derivation function 2 (PKCS #5 v2.0) with HMAC as \
pseudorandom function."""
    if not isinstance(hash_name, str):
        kind = type(hash_name).__name__
        raise TypeError(f"pbkdf2_hmac() argument 'hash_name' must be str, not {kind}")
    iterations = operator.index(iterations)
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    inner, outer = keyed(hash_name, bytes(memoryview(password)))
    size = inner.digest_size
    wanted = size if dklen is None else operator.index(dklen)
    if wanted < 1:
        raise ValueError("key length must be greater than 0.")
    salt, key = bytes(memoryview(salt)), b""

    def digest(message):
        one, other = inner.copy(), outer.copy()
        one.update(message)
        other.update(one.digest())
        return other.digest()

    from_bytes = int.from_bytes
    for block in range(1, -(-wanted // size) + 1):
        last = digest(salt + block.to_bytes(4))
        mixed = from_bytes(last)
        for _ in range(iterations - 1):
            last = digest(last)
            mixed ^= from_bytes(last)
        key += mixed.to_bytes(size)
    return key[:wanted]


def keyed(hash_name, password):
    """The two hashes of an HMAC, which have the key in them."""
    inner, outer = hashlib.new(hash_name), hashlib.new(hash_name)
    if len(password) > inner.block_size:
        password = hashlib.new(hash_name, password).digest()
    password = password.ljust(inner.block_size, b"\0")
    inner.update(bytes(byte ^ 0x36 for byte in password))
    outer.update(bytes(byte ^ 0x5C for byte in password))
    return inner, outer


def scrypt(password, *, salt, n, r, p, maxmem=0, dklen=64):
    """scrypt password-based key derivation function; it is not here."""
    raise NotImplementedError(
        "hashlib.scrypt() is not here: use hashlib.pbkdf2_hmac(), or call a function of the host "
        "that derives the key"
    )


def thread_time():
    """Processor time in seconds; threads take turns, and the time is that of all."""
    return time.process_time()


def thread_time_ns():
    """Processor time in nanoseconds; threads take turns, and the time is that of all."""
    return time.process_time_ns()


def clock_info(plain):
    """What tells about clocks, that of threads' time too."""

    def get_clock_info(name):
        """Get information of the specified clock."""
        return plain("process_time" if name == "thread_time" else name)

    return get_clock_info


def leave(self, code=None):
    """Raises SystemExit.

    CPython's closes standard input besides, which a later cell of the session may read.
    """
    raise SystemExit(code)


def set_recursion_limit(plain):
    def setrecursionlimit(limit, /):
        """Set the maximum depth of the Python interpreter stack to n."""
        global recursion_limit
        wanted = operator.index(limit)
        plain(min(wanted, DEEPEST) if wanted < 2**31 else wanted)
        recursion_limit = wanted if wanted > DEEPEST else None

    return setrecursionlimit


def get_recursion_limit(plain):
    def getrecursionlimit():
        """Return the current value of the recursion limit."""
        return plain() if recursion_limit is None else recursion_limit

    return getrecursionlimit
