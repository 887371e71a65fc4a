"""Decodes JSON and MessagePack into a class."""

import msgspec


class Item(msgspec.Struct):
    name: str
    price: float = 1.0


item = msgspec.json.decode(b'{"name":"a"}', type=Item)
assert item == Item("a") and msgspec.msgpack.decode(msgspec.msgpack.encode(item), type=Item) == item
