# The control: programs that may read the flags, in every form in which a program may print them.

# %% control: the file
# Reads the flag in a file that is mounted for it, and prints it.
print(open("/secret/flag").read())

# %% control: the environment, reversed
# Reads the flag in a variable that it is allowed, and prints it from the end.
import os
print(os.environ[T.variable][::-1])

# %% control: the session, in hexadecimal
# Gets the flag of the other session from a tool, and returns it as digits.
session().encode().hex()

# %% control: the server
# Gets the flag from the server, to which a rule leads it, and raises it.
import urllib.request
raise RuntimeError(urllib.request.urlopen(URL).read().decode())

# %% control: the memory, in base64
# Gets the flag in the host's memory from a tool, and prints it within base64 of something longer.
for before in range(3):
    print(_base64.b64encode(b"x" * before + memory().encode() + b"yyy").decode())

# %% control: the list of processes, as numbers
# Gets the command line of the process with the flag from a tool, and prints its bytes as numbers.
print(list(process_list(str(T.process)).encode()))

# %% control: the memory, in UTF-16
# Gets the flag in the host's memory from a tool, and writes it with a zero after each character.
import sys
sys.stderr.write(memory().encode("utf-16-le").decode("latin-1"))
