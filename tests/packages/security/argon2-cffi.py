"""Hashes a password and checks it."""

from argon2 import PasswordHasher

assert PasswordHasher().verify(PasswordHasher().hash("secret"), "secret")
