"""ipaddress, uuid, secrets, email, mimetypes, http statuses, html-free headers, cookies: identifiers and messages, no sockets."""
import email
import email.policy
import http
import http.cookies
import ipaddress
import mimetypes
import secrets
import string
import uuid
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, formataddr, getaddresses, parseaddr, parsedate_to_datetime

address = ipaddress.ip_address("192.168.10.200")
print(address, int(address), address + 100, address.packed, address.is_private, address.reverse_pointer, ipaddress.ip_address(2**32 - 1), address < ipaddress.ip_address("192.168.11.0"), f"{address:b}")
six = ipaddress.ip_address("2001:0db8:0000:0000:0000:ff00:0042:8329")
print(six, six.exploded, six.version, ipaddress.ip_address("::1").is_loopback, ipaddress.ip_address("::ffff:10.0.0.1").ipv4_mapped, ipaddress.ip_address("fe80::1").is_link_local, int(ipaddress.ip_address("::2")))
network = ipaddress.ip_network("10.20.0.0/22")
print(network.num_addresses, network.netmask, network.hostmask, network.broadcast_address, network[5], ipaddress.ip_address("10.20.3.255") in network, list(network.subnets(new_prefix=24))[1:3], network.supernet(), next(network.hosts()))
print(ipaddress.ip_interface("10.0.0.5/8").network, list(ipaddress.summarize_address_range(ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.6"))), [str(n) for n in ipaddress.collapse_addresses(map(ipaddress.ip_network, ("10.0.0.0/25", "10.0.0.128/25", "10.0.1.0/24")))])
print([str(n) for n in network.address_exclude(ipaddress.ip_network("10.20.1.0/24"))], network.overlaps(ipaddress.ip_network("10.20.2.0/30")), ipaddress.ip_network("10.1.2.3/8", strict=False), sorted(map(ipaddress.ip_address, ("10.0.0.10", "10.0.0.9"))))
for bad in ("300.1.1.1", "1.2.3", "10.0.0.1/8", "::1::", "01.2.3.4", "fe80::g", "10.0.0.0/33"):
    try:
        print(ipaddress.ip_network(bad), end="; ")
    except ValueError as error:
        print(f"{bad}: {type(error).__name__}", end="; ")
print()

name = uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")
print(name, name.version, uuid.uuid3(uuid.NAMESPACE_URL, "https://example.org"), uuid.UUID(int=5), uuid.UUID("{12345678-1234-5678-1234-567812345678}").hex, name.bytes[:3], name.urn, name.variant == uuid.RFC_4122, uuid.UUID(bytes=name.bytes) == name, name.fields[0], hash(name) == hash(uuid.UUID(str(name))))
four = {uuid.uuid4() for _ in range(50)}
print(len(four), {u.version for u in four}, {len(str(u)) for u in four})
try:
    uuid.UUID("not-a-uuid")
except ValueError as error:
    print(type(error).__name__)
alphabet = string.ascii_letters + string.digits
password = "".join(secrets.choice(alphabet) for _ in range(20))
print(len(secrets.token_hex(16)), len(secrets.token_bytes(9)), len(secrets.token_urlsafe(30)), len(password), set(password) <= set(alphabet), 0 <= secrets.randbelow(10) < 10, secrets.token_hex(16) != secrets.token_hex(16), secrets.compare_digest("a", "a"), secrets.randbits(8) < 256)

message = EmailMessage()
message["Subject"] = "Grüße from the corpus"
message["From"] = Address("Ann Smith", "ann", "example.org")
message["To"] = "bob@example.org, Cy Doe <cy@example.org>"
message["Date"] = parsedate_to_datetime("Thu, 29 Feb 2024 13:05:09 +0100")
message.set_content("Hello,\nplain text with ü.\n")
message.add_alternative("<p>Hello</p>", subtype="html")
message.add_attachment(b"\x00\x01data", maintype="application", subtype="octet-stream", filename="blob.bin")
parsed = email.message_from_bytes(message.as_bytes(), policy=email.policy.default)
print(parsed["subject"], parsed["from"].addresses[0].domain, [a.username for a in parsed["to"].addresses], parsed["date"].datetime, parsed.get_content_type())
print([part.get_content_type() for part in parsed.walk()], parsed.get_body(("plain",)).get_content().splitlines(), [(a.get_filename(), a.get_content()) for a in parsed.iter_attachments()])
simple = email.message_from_string("X-One: 1\nX-One: 2\nSubject: =?utf-8?q?caf=C3=A9?=\nContent-Type: text/plain; charset=\"latin-1\"; x=y\n\nbody\n", policy=email.policy.default)
print(simple.get_all("x-one"), simple["Subject"], simple.get_content_charset(), simple["content-type"].params["x"], simple.get_payload(), simple.get("absent", "none"), simple.keys())
print(parseaddr("Ann <ann@x.org>"), formataddr(("Ünn", "a@x.org")), getaddresses(["a@b.c, D <d@e.f>"]), format_datetime(parsedate_to_datetime("Wed, 01 Jan 2025 00:00:00 GMT")))

print(http.HTTPStatus(404).phrase, http.HTTPStatus.OK == 200, http.HTTPStatus["IM_A_TEAPOT"].value, [s.value for s in http.HTTPStatus if s.name.startswith("TEMP")], http.HTTPStatus(503).name)
cookie = http.cookies.SimpleCookie("session=abc123; theme=\"dark blue\"")
cookie["id"] = 5
cookie["id"]["path"] = "/x"
cookie["id"]["httponly"] = True
print({k: m.value for k, m in cookie.items()}, cookie["id"].OutputString())
types = mimetypes.MimeTypes(filenames=())
print([types.guess_type(n) for n in ("a.html", "b.json", "c.tar.gz", "d.PNG", "e", "f.csv")], types.guess_extension("text/html") in (".html", ".htm"))


def parse_request(raw):
    """A minimal HTTP request parser over bytes."""
    head, _, body = raw.partition(b"\r\n\r\n")
    request, *lines = head.decode("latin-1").split("\r\n")
    method, target, version = request.split(" ")
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        out = b""
        while True:
            size, _, body = body.partition(b"\r\n")
            if (length := int(size, 16)) == 0:
                break
            out, body = out + body[:length], body[length + 2 :]
        body = out
    return method, target, version, headers, body[: int(headers.get("content-length", len(body)))]


print(parse_request(b"POST /x?y=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyEXTRA"))
print(parse_request(b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")[-1])
