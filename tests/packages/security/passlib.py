"""Hashes a password and checks it."""

from passlib.hash import pbkdf2_sha256

hashed = pbkdf2_sha256.using(rounds=1000).hash("secret")
assert pbkdf2_sha256.verify("secret", hashed) and not pbkdf2_sha256.verify("no", hashed)
