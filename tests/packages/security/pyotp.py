"""Makes and checks codes of one time."""

import pyotp

codes = pyotp.TOTP("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", digits=8)
assert codes.verify(codes.now()) and codes.at(59) == "94287082"
