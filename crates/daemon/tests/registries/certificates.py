"""A CA of the test's own and its certificates, made by the command `openssl`."""

import ssl
import subprocess
from pathlib import Path

# What is wrong with the certificate of these hosts.
EXPIRED = "expired.test"
OTHER_NAME = "other-name.test"
UNTRUSTED = "untrusted.test"

CONFIG = """
[ca]
default_ca = own
[own]
dir = {dir}
new_certs_dir = $dir
database = $dir/index
serial = $dir/serial
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
"""


class Authority:
    """A CA in a folder; its own certificate is `ca.pem`."""

    def __init__(self, folder, name):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "config").write_text(CONFIG.format(dir=self.folder))
        (self.folder / "index").write_text("")
        (self.folder / "serial").write_text("01")
        self.root = self.folder / "ca.pem"
        self.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -keyout ca.key -out ca.pem",
            ["-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
             "-addext", "keyUsage=critical,keyCertSign"],
        )

    def openssl(self, words, more=()):
        command = ["openssl", *words.split(), *more]
        if words.startswith("req"):
            command += ["-config", "config"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")

    def issue(self, file, hosts, begin="20230101000000Z", end="20991231235959Z"):
        """Issues a certificate for these hosts, and returns a TLS context that shows it."""
        names = ",".join(f"DNS:{host}" for host in hosts)
        subject = ["-subj", "/CN=registry", "-addext", f"subjectAltName={names}",
                   "-addext", "basicConstraints=CA:FALSE"]
        self.openssl(
            f"req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {file}.key -out {file}.csr", subject
        )
        self.openssl(f"ca -batch -notext -config config -cert ca.pem -keyfile ca.key -in {file}.csr -out {file}.pem",
                     ["-startdate", begin, "-enddate", end])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{file}.pem", self.folder / f"{file}.key")
        context.set_alpn_protocols(["http/1.1"])
        return context


def contexts(folder, hosts):
    """The context to listen with: it shows a good certificate, and to those who ask for a bad one that."""
    own = Authority(folder, "Registries of a test")
    other = Authority(Path(folder) / "other", "A CA that nobody trusts")
    bad = {
        EXPIRED: own.issue("expired", [EXPIRED], end="20240101000000Z"),
        OTHER_NAME: own.issue("other-name", ["yet-another-name.test"]),
        UNTRUSTED: other.issue("untrusted", [UNTRUSTED]),
    }
    good = own.issue("good", hosts)

    def choose(connection, name, _):
        if name in bad:
            connection.context = bad[name]

    good.sni_callback = choose
    return good
