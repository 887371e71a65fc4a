"""Signs data and refuses changed data."""

from itsdangerous import BadSignature, URLSafeSerializer

serializer = URLSafeSerializer("key")
assert serializer.loads(serializer.dumps({"a": 1})) == {"a": 1}
try:
    serializer.loads(serializer.dumps({"a": 1})[:-1])
    raise AssertionError("not refused")
except BadSignature:
    pass
