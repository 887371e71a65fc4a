"""Signs a token and checks it."""

import jwt

key = "0" * 32
assert jwt.decode(jwt.encode({"sub": "a"}, key, "HS256"), key, ["HS256"]) == {"sub": "a"}
