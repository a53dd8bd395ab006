"""What registries serve: entries by host and path. The same names give the same bytes, on every machine."""

import gzip
import hashlib
import io
import lzma
import tarfile
from dataclasses import dataclass, field

EPOCH = 1_700_000_000
LAST_MODIFIED = "Tue, 14 Nov 2023 22:13:20 GMT"


@dataclass
class Entry:
    """A response: `kind` is `file` for what never changes, `index` for what may, `other` for the rest."""

    body: bytes
    kind: str
    content_type: str = "application/octet-stream"
    headers: dict = field(default_factory=dict)
    status: int = 200
    # Another body for clients whose Accept contains this content type: (content type, body).
    variant: tuple = ()
    # Whether it is packed for clients that take gzip.
    packs: bool = False
    # The token without which the answer is 401, and the challenge.
    token: str = ""
    challenge: str = ""

    def tag(self):
        return '"' + hashlib.sha256(self.body).hexdigest()[:32] + '"'


class Tree:
    """All entries, and what each client must have got when it has finished: `wanted[client][name]` is a SHA-256."""

    def __init__(self):
        self.entries = {}
        self.wanted = {}

    def add(self, host, path, body, kind, **more):
        self.entries[host, path] = Entry(body, kind, **more)

    def file(self, host, path, body, **more):
        headers = {"Cache-Control": "max-age=31536000, immutable"} | more.pop("headers", {})
        self.add(host, path, body, "file", headers=headers, **more)

    def index(self, host, path, body, **more):
        headers = {"Cache-Control": "max-age=60"} | more.pop("headers", {})
        self.add(host, path, body, "index", headers=headers, **more)

    def want(self, client, name, body):
        self.wanted.setdefault(client, {})[name] = sha256(body)

    def hosts(self):
        return sorted({host for host, _ in self.entries})


def noise(name, length):
    """Bytes that neither compress nor repeat."""
    return hashlib.shake_256(name.encode()).digest(length)


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def tar(files, directories=()):
    """A tar of `(name, body)`, without packing."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in directories:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, EPOCH
            archive.addfile(info)
        for name, body in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(body), 0o644, EPOCH
            archive.addfile(info, io.BytesIO(body))
    return out.getvalue()


def tar_gz(files):
    return gzip.compress(tar(files), 1, mtime=0)


def xz(body):
    return lzma.compress(body, preset=1)
