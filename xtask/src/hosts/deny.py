"""Runs a command for which the kernel refuses system calls: `deny.py ERRNO CALL,... COMMAND...`."""

import ctypes
import os
import platform
import struct
import sys

# The numbers of newer calls are the same on all machines but a few.
CALLS = {"memfd_create": {"x86_64": 319, "aarch64": 279}, "close_range": 436}
CALLS |= {f"landlock_{name}": 444 + number for number, name in enumerate(["create_ruleset", "add_rule", "restrict_self"])}
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
LOAD, EQUAL, RETURN, ALLOW, ERROR = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000

errno, names, *command = sys.argv[1:]
numbers = [CALLS[name] for name in names.split(",")]
numbers = [number if isinstance(number, int) else number[platform.machine()] for number in numbers]
steps = [(LOAD, 0, 0, 0)]
for number in numbers:
    steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | int(errno))]
steps.append((RETURN, 0, 0, ALLOW))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SECCOMP, FILTER, program, 0, 0):
    print("the kernel takes no filter of system calls", file=sys.stderr)
    sys.exit(77)
os.execvp(command[0], command)
