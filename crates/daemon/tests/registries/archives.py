"""Archives of distributions: Debian's, OpenWrt's and Alpine's."""

import base64
import gzip
import hashlib

from content import noise, sha256, tar, tar_gz, xz

DEBIAN = "deb.debian.org"
OPENWRT = "downloads.openwrt.org"
ALPINE = "dl-cdn.alpinelinux.org"


def ar(members):
    """An `ar` archive, the outer form of a .deb."""
    out = b"!<arch>\n"
    for name, body in members:
        out += f"{name:<16}{1_700_000_000:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n".encode()
        out += body + b"\n" * (len(body) % 2)
    return out


def deb(name, depends, size):
    control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Test <test@example.org>\n"
    control += (f"Depends: {depends}\n" if depends else "") + "Description: a package of a test\n"
    data = tar([(f"./usr/share/{name}/data", noise(name, size))], ["./usr", "./usr/share", f"./usr/share/{name}"])
    parts = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", tar_gz([("./control", control.encode())])),
        ("data.tar.gz", gzip.compress(data, 1, mtime=0)),
    ]
    return control, ar(parts)


def debian(tree):
    """A suite without signatures, for `[trusted=yes]`. The index is as long as one of a thousand packages."""
    packages = ""
    for name, depends, size in [("hearsay-alpha", "hearsay-beta", 2_000_000), ("hearsay-beta", "", 1_000_000)]:
        control, body = deb(name, depends, size)
        path = f"pool/main/h/{name}/{name}_1.0_all.deb"
        tree.file(DEBIAN, f"/debian/{path}", body, content_type="application/vnd.debian.binary-package")
        tree.want("apt", f"{name}_1.0_all.deb", body)
        packages += f"{control}Filename: {path}\nSize: {len(body)}\nSHA256: {sha256(body)}\n\n"
    control, body = deb("wrong-digest", "", 300_000)
    path = "pool/main/w/wrong-digest/wrong-digest_1.0_all.deb"
    tree.file(DEBIAN, f"/debian/{path}", body)
    # As long as the file, but of another one.
    packages += f"{control}Filename: {path}\nSize: {len(body)}\nSHA256: {sha256(body[::-1])}\n\n"
    for number in range(1000):
        packages += (
            f"Package: filler-{number}\nVersion: 1.0\nArchitecture: all\nMaintainer: Test <test@example.org>\n"
            f"Description: nothing but a stanza\nFilename: pool/main/f/filler/filler-{number}_1.0_all.deb\nSize: 1\n"
            f"SHA256: {hashlib.sha256(str(number).encode()).hexdigest()}\n\n"
        )
    suite(tree, packages.encode())


def suite(tree, packages):
    base, sums = "/debian/dists/stable", ""
    for name, body in [
        ("Packages", packages),
        ("Packages.gz", gzip.compress(packages, mtime=0)),
        ("Packages.xz", xz(packages)),
    ]:
        folder = "main/binary-amd64"
        sums += f" {sha256(body)} {len(body)} {folder}/{name}\n"
        tree.index(DEBIAN, f"{base}/{folder}/{name}", body)
        tree.file(DEBIAN, f"{base}/{folder}/by-hash/SHA256/{sha256(body)}", body)
    release = (
        "Origin: Test\nLabel: Test\nSuite: stable\nCodename: test\nDate: Tue, 14 Nov 2023 22:13:20 UTC\n"
        f"Acquire-By-Hash: yes\nArchitectures: amd64\nComponents: main\nSHA256:\n{sums}"
    )
    tree.index(DEBIAN, f"{base}/Release", release.encode(), content_type="text/plain")


def openwrt(tree):
    folder = "/releases/23.05.5/packages/x86_64/base"
    control = b"Package: hearsay-alpha\nVersion: 1.0\nArchitecture: all\n"
    files = [("./debian-binary", b"2.0\n"), ("./control.tar.gz", tar_gz([("./control", control)]))]
    files.append(("./data.tar.gz", tar_gz([("./data", noise("ipk", 300_000))])))
    body, name = tar_gz(files), "hearsay-alpha_1.0_all.ipk"
    tree.file(OPENWRT, f"{folder}/{name}", body)
    tree.want("opkg", name, body)
    packages = control + f"Filename: {name}\nSize: {len(body)}\nSHA256sum: {sha256(body)}\n\n".encode()
    tree.index(OPENWRT, f"{folder}/Packages", packages)
    tree.index(OPENWRT, f"{folder}/Packages.gz", gzip.compress(packages, mtime=0))


def alpine(tree):
    """Without signatures, which apk can be told to permit."""
    folder = "/alpine/v3.20/main/x86_64"
    info = b"pkgname = hearsay-alpha\npkgver = 1.0-r0\narch = x86_64\n"
    control = tar_gz([(".PKGINFO", info)])
    body, name = control + tar_gz([("usr/share/data", noise("apk", 300_000))]), "hearsay-alpha-1.0-r0.apk"
    tree.file(ALPINE, f"{folder}/{name}", body)
    tree.want("apk", name, body)
    digest = "Q1" + base64.b64encode(hashlib.sha1(control).digest()).decode()
    index = f"C:{digest}\nP:hearsay-alpha\nV:1.0-r0\nA:x86_64\nS:{len(body)}\nI:{len(body)}\nT:a package\n\n"
    tree.index(ALPINE, f"{folder}/APKINDEX.tar.gz", tar_gz([("APKINDEX", index.encode())]))
