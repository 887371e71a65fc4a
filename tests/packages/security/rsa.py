"""Encrypts and signs with a key of 512 bits."""

import rsa

public, private = rsa.newkeys(512)
assert rsa.decrypt(rsa.encrypt(b"hi", public), private) == b"hi"
assert rsa.verify(b"hi", rsa.sign(b"hi", private, "SHA-256"), public) == "SHA-256"
