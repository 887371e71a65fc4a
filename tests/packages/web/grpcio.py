"""Makes a channel."""

import grpc

assert grpc.insecure_channel("127.0.0.1:1") is not None
