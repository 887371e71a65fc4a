"""Encrypts, and signs with a key."""

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

box = Fernet(Fernet.generate_key())
assert box.decrypt(box.encrypt(b"hello")) == b"hello"
key = Ed25519PrivateKey.generate()
key.public_key().verify(key.sign(b"hello"), b"hello")
