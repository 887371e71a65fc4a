"""Packs data as a message and reads it."""

from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

message = Struct()
message.update({"a": [1, "b"]})
again = Struct.FromString(message.SerializeToString())
assert json_format.MessageToDict(again) == {"a": [1.0, "b"]}
