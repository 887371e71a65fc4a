"""Makes and checks codes of one time."""

import pyotp

codes = pyotp.TOTP("JBSWY3DPEHPK3PXP")
assert codes.verify(codes.now()) and codes.at(0) == "282760"
