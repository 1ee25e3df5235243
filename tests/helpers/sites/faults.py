"""The fault lab: hosts with each known fault of a robots.txt, each host at its own address.

One server, bound to 0.0.0.0, serves all of 127.0.0.0/8; the address of a connection selects the fault. Pages
are always fine, only robots.txt is faulty. Each fault ends when the lab closes.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

import brotli

from tests.helpers.sites.certificate import make_certificate
from tests.helpers.sites.site import need_many_hosts

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

RULES = b"User-agent: *\nDisallow: /back/\n"
# Without its end it forbids nothing.
LONG = b"User-agent: *\n" + b"".join(b"Disallow: /attic/%d\n" % i**5 for i in range(2000)) + RULES[14:]
BOMB = RULES + bytes(10_000_000)


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def zstd_with_large_window(data: bytes) -> bytes:
    """With a window of 64 MiB, where HTTP allows 8 (RFC 9659)."""
    return zstd.compress(data, options={zstd.CompressionParameter.window_log: 26})


# Level 1, because all workers of the tests compress all bodies.
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, compresslevel=1),
    "deflate": partial(zlib.compress, level=1),
    "raw deflate": raw_deflate,
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": zstd.compress,
}


@dataclass
class Exchange:
    """A request for robots.txt to which a fault responds."""

    connection: socket.socket
    target: str
    headers: dict[str, str]
    lab: FaultLab

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answer(self, status: str, body: bytes = b"", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", *headers]
        if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)

    def slowly(self, data: bytes, seconds: float = 1.0) -> Iterator[None]:
        """Send single bytes, until the lab closes."""
        for byte in data:
            self.send(bytes([byte]))
            if self.lab.closing.wait(seconds):
                return
            yield

    def reset(self) -> None:
        """End the connection with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass(frozen=True)
class Fault:
    """One fault of a robots.txt: what the host does, and the expected outcome of its crawl.

    `outcome`, by the default policy, is ``rules`` (of /open and /back/, the second is dropped), ``open``
    (neither is) or ``closed`` (both are); `host` and `port` replace those of the lab;
    nothing listens on the port ``closed``. With `tls`, the host speaks TLS. A fault that `hangs` ends only
    with the timeout of the crawler.
    """

    name: str
    outcome: str
    play: Callable[[Exchange], None]
    scheme: str = "http"
    host: str = ""
    port: str = ""
    hangs: bool = False
    tls: bool = False


FAULTS: list[Fault] = []


def fault(
    name: str, outcome: str, **where: Any
) -> Callable[[Callable[[Exchange], None]], Callable[[Exchange], None]]:
    def register(play: Callable[[Exchange], None]) -> Callable[[Exchange], None]:
        FAULTS.append(Fault(name, outcome, play, **where))
        return play

    return register


def answers(name: str, outcome: str, status: str, body: bytes = b"", *headers: str) -> None:
    FAULTS.append(Fault(name, outcome, lambda exchange: exchange.answer(status, body, *headers)))


# Statuses. The body has rules, to show that they are not read.
answers("no fault", "rules", "200 OK", RULES, "Content-Type: text/plain")
answers("empty file", "open", "200 OK")
answers("204 No Content", "open", "204 No Content")
answers("404 with rules in the page", "open", "404 Not Found", RULES)
answers("410 with rules in the page", "open", "410 Gone", RULES)
answers("401 Unauthorized", "closed", "401 Unauthorized", b"", 'WWW-Authenticate: Basic realm="x"')
answers("403 with rules in the page", "closed", "403 Forbidden", RULES)
answers("429 Too Many Requests", "closed", "429 Too Many Requests", b"", "Retry-After: 86400")
answers("407 with rules in the page", "closed", "407 Proxy Authentication Required", RULES)
answers("408 with rules in the page", "closed", "408 Request Timeout", RULES)
answers("421 with rules in the page", "closed", "421 Misdirected Request", RULES)
answers("425 with rules in the page", "closed", "425 Too Early", RULES)
answers("431 with rules in the page", "closed", "431 Request Header Fields Too Large", RULES)
answers("511 with rules in the page", "closed", "511 Network Authentication Required", RULES)
answers("500 with rules in the page", "closed", "500 Internal Server Error", RULES)
answers("503 Service Unavailable", "closed", "503 Service Unavailable", b"")
answers("999 Request Denied", "closed", "999 Request Denied")
answers("304 without a conditional request", "closed", "304 Not Modified")

# Bodies.
answers(
    "HTML page with rules",
    "open",
    "200 OK",
    b"<!DOCTYPE html><html><pre>\nUser-agent: *\nDisallow: /back/\n</pre></html>",
    "Content-Type: text/html",
)
answers(
    "HTML page with a META refresh",
    "open",
    "200 OK",
    b'<html><head><meta http-equiv="refresh" content="0; url=/other/robots.txt"></head></html>',
    "Content-Type: text/html",
)
answers("byte order mark", "rules", "200 OK", b"\xef\xbb\xbf" + RULES)
answers("two byte order marks", "rules", "200 OK", b"\xef\xbb\xbf" * 2 + RULES)
answers("UTF-16", "rules", "200 OK", RULES.decode().encode("utf-16"))
answers("UTF-16 without a byte order mark", "rules", "200 OK", RULES.decode().encode("utf-16-le"))
answers("UTF-32", "rules", "200 OK", RULES.decode().encode("utf-32"))
answers("UTF-32 without a byte order mark", "rules", "200 OK", RULES.decode().encode("utf-32-be"))
for name, compress in COMPRESSORS.items():
    said = f"Content-Encoding: {name.removeprefix('raw ')}"
    sent = compress(LONG)
    answers(name, "rules", "200 OK", sent, said)
    answers(f"incomplete {name}", "closed", "200 OK", sent[: len(sent) * 2 // 3], said)
    answers(f"Content-Encoding says {name}, but the body is not", "closed", "200 OK", RULES, said)
    answers(f"{name} in Content-Encoding, empty file", "open", "200 OK", b"", said)
    answers(f"{name}, 10 MB when decompressed", "closed", "200 OK", compress(BOMB), said)
answers("gzip, no Content-Encoding", "rules", "200 OK", gzip.compress(RULES))
answers("incomplete gzip, no Content-Encoding", "closed", "200 OK", gzip.compress(RULES * 50)[:-12])
answers("gzip, 10 MB when decompressed, no Content-Encoding", "closed", "200 OK", gzip.compress(BOMB, 1))
MEMBERS = gzip.compress(RULES[:14]) + gzip.compress(RULES[14:])
answers("gzip with two members", "rules", "200 OK", MEMBERS, "Content-Encoding: gzip")
answers("gzip with two members, no Content-Encoding", "rules", "200 OK", MEMBERS)
answers("incomplete gzip with two members, no Content-Encoding", "closed", "200 OK", MEMBERS[:-9])
answers("gzip with a wrong checksum", "closed", "200 OK", MEMBERS[:-8] + bytes(8), "Content-Encoding: gzip")
answers(
    "gzip, then rules that are not compressed",
    "closed",
    "200 OK",
    gzip.compress(b"") + RULES,
    "Content-Encoding: gzip",
)
answers(
    "gzip, then zero bytes and a line end", "rules", "200 OK", MEMBERS + b"\0\0\r\n", "Content-Encoding: gzip"
)
answers(
    "compressed twice with gzip, but Content-Encoding says gzip once",
    "rules",
    "200 OK",
    gzip.compress(MEMBERS),
    "Content-Encoding: gzip",
)
answers(
    "deflate, then gzip",
    "rules",
    "200 OK",
    gzip.compress(zlib.compress(RULES)),
    "Content-Encoding: Deflate, gzip",
)
answers(
    "incomplete deflate, then gzip",
    "closed",
    "200 OK",
    gzip.compress(zlib.compress(LONG)[:-20]),
    "Content-Encoding: deflate",
    "Content-Encoding: gzip",
)
answers("ten codings in Content-Encoding", "closed", "200 OK", b"", "Content-Encoding: " + "br, " * 9 + "br")
answers("Content-Encoding: identity", "rules", "200 OK", RULES, "Content-Encoding: identity")
answers("unknown Content-Encoding", "closed", "200 OK", RULES, "Content-Encoding: rot13")
answers("file larger than the limit", "closed", "200 OK", RULES + b"#" * 200_000)
answers("206 Partial Content", "closed", "206 Partial Content", RULES, "Content-Range: bytes 0-30/999")
answers("body shorter than Content-Length", "closed", "200 OK", RULES, "Content-Length: 5000")
answers("incomplete chunked body", "closed", "200 OK", b"ff\r\n" + RULES, "Transfer-Encoding: chunked")


@fault("no Content-Length, body ends with the connection", "rules")
def no_length(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + RULES)


@fault("404 without Content-Length, ends with the connection", "open")
def no_length_404(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nNo such page")


@fault("endless body", "closed")
def endless(exchange: Exchange) -> None:
    exchange.answer("200 OK", RULES, "Content-Length: 1000000000000")
    while not exchange.lab.closing.is_set():
        exchange.send(b"# and on and on\n" * 500)


@fault("endless chunked body", "closed")
def endless_chunks(exchange: Exchange) -> None:
    exchange.answer("200 OK", b"", "Transfer-Encoding: chunked")
    while not exchange.lab.closing.is_set():
        exchange.send(b"1000\r\n" + b"#" * 4096 + b"\r\n")


@fault("body: one byte per second", "closed", hangs=True)
def drip(exchange: Exchange) -> None:
    exchange.answer("200 OK", b"", f"Content-Length: {len(RULES)}")
    for _ in exchange.slowly(RULES):
        pass


@fault("headers: one byte per second", "closed", hangs=True)
def drip_headers(exchange: Exchange) -> None:
    for _ in exchange.slowly(b"HTTP/1.1 200 OK\r\nX-Padding: " + b"." * 1000):
        pass


@fault("no response", "closed", hangs=True)
def silence(exchange: Exchange) -> None:
    exchange.lab.closing.wait(60)


# Connections.
@fault("connection closed before the response", "closed")
def hang_up(exchange: Exchange) -> None:
    """The connection ends when this returns."""


@fault("connection reset before the response", "closed")
def reset(exchange: Exchange) -> None:
    exchange.reset()


@fault("connection reset during the response", "closed")
def late_reset(exchange: Exchange) -> None:
    exchange.answer("200 OK", RULES, "Content-Length: 5000")
    exchange.lab.closing.wait(0.05)
    exchange.reset()


@fault("connection reset during the response, no Content-Length", "closed")
def reset_without_length(exchange: Exchange) -> None:
    no_length(exchange)
    exchange.lab.closing.wait(0.1)  # a reset drops what the client has not read yet
    exchange.reset()


@fault("TLS without close_notify, no Content-Length", "closed", tls=True)
def no_alert(exchange: Exchange) -> None:
    no_length(exchange)


@fault("TLS with close_notify, no Content-Length", "rules", tls=True)
def alert(exchange: Exchange) -> None:
    no_length(exchange)
    assert isinstance(exchange.connection, ssl.SSLSocket)
    exchange.connection.unwrap()


@fault("TLS without close_notify, with Content-Length", "rules", tls=True)
def no_alert_with_length(exchange: Exchange) -> None:
    exchange.answer("200 OK", RULES)


@fault("response that is not HTTP", "closed")
def gibberish(exchange: Exchange) -> None:
    exchange.send(b"\x00\x01\x02 220 mail.town.example ESMTP\r\n\r\n")


@fault("header of 1 MB", "closed")
def huge_header(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nX-Padding: " + b"." * 1_000_000 + b"\r\n")
    exchange.answer("200 OK", RULES)


FAULTS += [
    Fault("connection refused", "closed", hang_up, port="closed"),
    Fault("https URL, server without TLS", "closed", hang_up, scheme="https", hangs=True),
    # A label of more than 63 characters, which is invalid without any DNS query.
    Fault("unknown host name", "closed", hang_up, host="a" * 64 + ".example"),
]


# Redirects.
def redirects(name: str, outcome: str, to: str, *, hangs: bool = False) -> None:
    """`to` may name the address and port of another fault: ``{healthy}``."""

    def play(exchange: Exchange) -> None:
        exchange.answer("302 Found", RULES, f"Location: {exchange.lab.fill_in(to)}")

    FAULTS.append(Fault(name, outcome, play, hangs=hangs))


redirects("redirect to itself", "closed", "/robots.txt")
redirects("redirect to a 410", "open", "{410 with rules in the page}/robots.txt")
redirects("redirect to the robots.txt of another host", "rules", "{no fault}/robots.txt")
redirects("redirect to a URL that is not ASCII", "rules", "{no fault}/robots.txt?\u00e9")
redirects("redirect to a 403", "closed", "{403 with rules in the page}/robots.txt")
redirects("redirect to a host without a response", "closed", "{no response}/robots.txt", hangs=True)
redirects("redirect to an ftp URL", "closed", "ftp://127.0.0.1/robots.txt")
redirects("redirect to a file URL", "closed", "file:///etc/passwd")
answers("redirect without Location", "closed", "302 Found", RULES)
answers("300 without Location", "closed", "300 Multiple Choices", RULES)
redirects("redirect to an invalid URL", "closed", "http://[")


@fault("endless redirects", "closed")
def labyrinth(exchange: Exchange) -> None:
    exchange.answer("301 Moved Permanently", b"", f"Location: {exchange.target}/deeper")


@dataclass
class FaultLab:
    """A context manager: the hosts run inside the ``with``. `asked` has the requests to each."""

    faults: list[Fault] = field(default_factory=lambda: list(FAULTS))
    asked: dict[str, list[str]] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        need_many_hosts()
        self._listener = socket.create_server(("0.0.0.0", 0), backlog=256)
        self._listener.settimeout(0.05)
        self.port: int = self._listener.getsockname()[1]
        self._unused = socket.socket()  # its port is reserved, but nothing listens on it
        self._unused.bind(("127.0.0.1", 0))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            self._tls.load_cert_chain(*make_certificate(Path(folder)))
        self._of_address = {f"127.0.3.{number}": fault for number, fault in enumerate(self.faults, 1)}
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def origin(self, fault: Fault) -> str:
        """The URL of a fault's host, without a slash at the end."""
        address = next(address for address, one in self._of_address.items() if one is fault)
        port = self._unused.getsockname()[1] if fault.port == "closed" else self.port
        scheme = "https" if fault.tls else fault.scheme
        return f"{scheme}://{fault.host or address}:{port}"

    def fill_in(self, url: str) -> str:
        for fault in self.faults:
            if f"{{{fault.name}}}" in url:
                return url.replace(f"{{{fault.name}}}", self.origin(fault))
        return url

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._thread.join()
        self._listener.close()
        self._unused.close()

    def _accept(self) -> None:
        while not self.closing.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30)
            fault = self._of_address[connection.getsockname()[0]]
            if fault.tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._answer(connection, fault)

    def _answer(self, connection: socket.socket, fault: Fault) -> None:
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                data = connection.recv(65536)
                if not data:
                    return
                head += data
            first, *rest = head.decode("latin-1").split("\r\n")
            target = first.split(" ")[1] if first.count(" ") == 2 else first
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
            }
            self.asked.setdefault(fault.name, []).append(target)
            exchange = Exchange(connection, target, headers, self)
            if "robots.txt" in target:
                fault.play(exchange)
            else:
                exchange.answer("200 OK", b"<html></html>", "Content-Type: text/html")
