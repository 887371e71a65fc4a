"""Makes a key for SSH."""

import paramiko

assert paramiko.ECDSAKey.generate().get_name() == "ecdsa-sha2-nistp256"
