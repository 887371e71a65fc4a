"""Writes a request of HTTP and reads an answer."""

import h11

client = h11.Connection(h11.CLIENT)
request = h11.Request(method="GET", target="/", headers=[("Host", "a")])
assert client.send(request) == b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
client.send(h11.EndOfMessage())
client.receive_data(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
assert client.next_event().status_code == 200 and client.next_event().data == b"hi"
