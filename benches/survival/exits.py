# Everything that ends a process, or pretends to.

# %% os._exit
import os
os._exit(3)

# %% os.abort
import os
os.abort()

# %% sys.exit
import sys
sys.exit(3)

# %% sys.exit with an object that cannot be shown
import sys
class A:
    def __str__(self):
        raise RuntimeError("no text")
sys.exit(A())

# %% a signal to itself
import os, signal
os.kill(os.getpid(), signal.SIGKILL)

# %% signal.raise_signal
import signal
signal.raise_signal(signal.SIGABRT)

# %% SIGSEGV by faulthandler
import faulthandler
faulthandler._sigsegv()

# %% a null pointer by ctypes
import ctypes
ctypes.string_at(0)

# %% a write to a wild address by ctypes
import ctypes
ctypes.memset(0x7FFF0000, 65, 1 << 20)

# %% a fork
import os
os.fork()

# %% another program in its place
import os
os.execv("/bin/true", ["true"])

# %% SystemExit in a destructor
class A:
    def __del__(self):
        raise SystemExit(3)
x = A()
del x

# %% every name that Python needs, deleted
import builtins
for name in list(vars(builtins)):
    if name not in ("vars", "list", "delattr", "name"):
        try:
            delattr(builtins, name)
        except Exception:
            pass

# %% the module of the program, cleared
import sys
sys.modules.clear()

# %% an exit while others exit
import atexit, os
atexit.register(os._exit, 3)
raise SystemExit
