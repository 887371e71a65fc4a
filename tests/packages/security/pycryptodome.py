"""Encrypts with AES-GCM."""

from Crypto.Cipher import AES

key = b"0" * 16
cipher = AES.new(key, AES.MODE_GCM)
text, tag = cipher.encrypt_and_digest(b"hello")
assert AES.new(key, AES.MODE_GCM, nonce=cipher.nonce).decrypt_and_verify(text, tag) == b"hello"
