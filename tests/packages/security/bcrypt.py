"""Hashes a password and checks it."""

import bcrypt

hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4))
assert bcrypt.checkpw(b"secret", hashed) and not bcrypt.checkpw(b"other", hashed)
