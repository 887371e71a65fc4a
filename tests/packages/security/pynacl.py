"""Encrypts a message for a key."""

from nacl.public import PrivateKey, SealedBox

key = PrivateKey.generate()
assert SealedBox(key).decrypt(SealedBox(key.public_key).encrypt(b"hi")) == b"hi"
