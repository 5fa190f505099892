"""A web server that serves some bytes, and misbehaves as it is told."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class BadServer:
    """What is served, what goes wrong, and what was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """By path without its slash."""
    faults: list[str] = field(default_factory=list)
    """What goes wrong with the next requests, one each: see `_Handler.answer`."""
    has_ranges: bool = True
    etag: str = ""
    """Of all files; empty is the sum of each, as most servers have it."""
    redirects: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and range of each request."""
    tokens: list[str] = field(default_factory=list)
    """The Authorization of each request."""
    is_closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def bad_server() -> Iterator[BadServer]:
    told = BadServer()

    class Handler(_Handler):
        server_state = told

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        told.url = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield told
        told.is_closing.set()
        running.shutdown()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    server_state: BadServer

    def do_GET(self) -> None:
        told = self.server_state
        path = self.path.lstrip("/").partition("?")[0]
        told.requests.append((path, self.headers["Range"] or ""))
        told.tokens.append(self.headers["Authorization"] or "")
        fault = told.faults.pop(0) if told.faults else ""
        if fault.isdecimal():
            self.send_error(int(fault))
        elif path in told.redirects:
            self.send_response(302)
            self.send_header("Location", told.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path not in told.files:
            self.send_error(404)
        else:
            self.answer(told.files[path], fault)

    def answer(self, body: bytes, fault: str) -> None:
        """Send the body, or what the fault makes of it."""
        told = self.server_state
        etag = told.etag or f'"{hashlib.sha256(body).hexdigest()}"'
        start = self.first_byte(etag)
        if start and start >= len(body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        part = body[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", etag)
        if start:
            first = start + 1 if fault == "shifted" else start
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        if fault == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            half = part[: len(part) // 2]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(half), half))
            return
        claimed = {"too long": len(part) + 9, "too short": len(part) - 9}
        length = claimed[fault] if fault in claimed else len(part)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if fault == "other bytes":
            self.wfile.write(bytes(len(part)))
        elif fault in ("cut", "stall"):
            self.wfile.write(part[: (len(part) + 1) // 2])
            if fault == "stall":
                told.is_closing.wait(5)
        else:
            self.wfile.write(part[:length])

    def first_byte(self, etag: str) -> int:
        """Return where a range begins that may be served."""
        wanted, condition = self.headers["Range"], self.headers["If-Range"]
        if not wanted or not self.server_state.has_ranges or condition not in (None, etag):
            return 0
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def log_message(self, *_: object) -> None:
        pass
