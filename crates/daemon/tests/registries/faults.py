"""Responses that break things. Each is a generator of bytes, its head included; the connection ends after it."""

import gzip
import time

import images
from certificates import EXPIRED, OTHER_NAME, UNTRUSTED
from content import noise, sha256
from languages import PYPI, PYPI_FILES, pypi_page

FAULTY = "faulty.test"
# A name of a private address, where no server is.
INNER = "inner.test"
HOSTS = [FAULTY, EXPIRED, OTHER_NAME, UNTRUSTED]

HUGE_BYTES = 200 << 20
BOMB_BYTES = 4 << 30


def head(status, *lines):
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "Connection: close", "", ""]).encode()


def to(place):
    return lambda: iter([head("302 Found", f"Location: {place}", "Content-Length: 0")])


def cut(body):
    """Half of a body."""

    def send():
        yield head("200 OK", f"Content-Length: {len(body)}", 'ETag: "cut"')
        yield body[: len(body) // 2]

    return send


def chunk(piece):
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


def slow():
    """A second and a half for 150 kB."""
    body = noise("slow", 150_000)
    yield head("200 OK", f"Content-Length: {len(body)}", "Cache-Control: max-age=60")
    for at in range(0, len(body), 5000):
        time.sleep(0.05)
        yield body[at : at + 5000]


def huge():
    """An index of 200 MB, whose links name a thousand hosts."""
    yield head("200 OK", "Content-Type: text/html", "Cache-Control: max-age=600", "Transfer-Encoding: chunked")
    yield chunk(b"<!DOCTYPE html><html><body>\n")
    sent = number = 0
    while sent < HUGE_BYTES:
        lines = []
        for number in range(number, number + 1000):
            digest = sha256(str(number % 1000).encode())
            host = PYPI_FILES if number % 2 else f"host-{number % 1000}.test"
            lines.append(f'<a href="https://{host}/packages/h-{number}.whl#sha256={digest}">h-{number}.whl</a><br/>\n')
        piece = "".join(lines).encode()
        yield chunk(piece)
        sent, number = sent + len(piece), number + 1
    yield chunk(b"</body></html>\n") + chunk(b"")


def bomb():
    """An index of 4 GiB that is packed to 4 MB."""
    fields = ["Content-Type: text/html", "Content-Encoding: gzip", "Cache-Control: max-age=600"]
    yield head("200 OK", *fields, "Transfer-Encoding: chunked")
    member = gzip.compress(b" " * (64 << 20), mtime=0)
    for _ in range(BOMB_BYTES // (64 << 20)):
        yield chunk(member)
    yield chunk(b"")


def faults(tree):
    """Adds to the tree what the faults need, and returns them by host and path."""
    digest = "sha256:" + sha256(b"what the digest promises")
    images.blob(tree, b"what the digest promises", served=b"what the digest did promise")
    wrong, short = "wrong_digest-1.0-py3-none-any.whl", "cut_short-1.0-py3-none-any.whl"
    for name, file, size in [("wrong-digest", wrong, 300_000), ("cut-short", short, 600_000)]:
        pypi_page(tree, name, file, f"/packages/{file}", sha256(noise(file, size)))
    tree.file(PYPI_FILES, f"/packages/{wrong}", noise("something else", 300_000))
    for host in HOSTS:
        tree.file(host, "/file", noise("file", 10_000))
    tree.file(FAULTY, "/blob", digest.encode())
    tree.index(FAULTY, "/changing", b"as it was\n")
    tree.file(FAULTY, "/pool/main/x.deb", b"no package\n")
    del tree.entries[FAULTY, "/pool/main/x.deb"].headers["Cache-Control"]
    return {
        (FAULTY, "/to-private"): to("https://10.9.9.9/file"),
        (FAULTY, "/to-inner"): to(f"https://{INNER}/file"),
        (FAULTY, "/to-http"): to(f"http://{FAULTY}/file"),
        (FAULTY, "/circle/0"): to(f"https://{FAULTY}/circle/1"),
        (FAULTY, "/circle/1"): to(f"https://{FAULTY}/circle/0"),
        (FAULTY, "/cut"): cut(noise("cut", 600_000)),
        (FAULTY, "/slow"): slow,
        (PYPI_FILES, f"/packages/{short}"): cut(noise(short, 600_000)),
        (PYPI, "/simple/huge/"): huge,
        (PYPI, "/simple/bomb/"): bomb,
    }
