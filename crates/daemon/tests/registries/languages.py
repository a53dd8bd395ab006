"""Registries of languages: PyPI, npm, crates.io, Go's proxy and Maven Central. In each, `alpha` depends on `beta`."""

import base64
import hashlib
import io
import json
import zipfile

from content import noise, sha256, tar_gz

PYPI = "pypi.org"
PYPI_FILES = "files.pythonhosted.org"
NPM = "registry.npmjs.org"
CRATES = "index.crates.io"
CRATES_FILES = "static.crates.io"
GO = "proxy.golang.org"
MAVEN = "repo.maven.apache.org"

ALPHA_BYTES = 2_000_000
BETA_BYTES = 1_000_000


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, body in files:
            info = zipfile.ZipInfo(name, (2023, 11, 14, 22, 13, 20))
            info.external_attr = 0o644 << 16
            archive.writestr(info, body)
    return out.getvalue()


def wheel(name, requires, size):
    dist = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n{requires}"
    files = [
        (f"{name}/__init__.py", b""),
        (f"{name}/data", noise(f"wheel {name}", size)),
        (f"{dist}/METADATA", metadata.encode()),
        (f"{dist}/WHEEL", b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
    ]
    record = "".join(f"{path},sha256={url_safe(body)},{len(body)}\n" for path, body in files)
    files.append((f"{dist}/RECORD", (record + f"{dist}/RECORD,,\n").encode()))
    return metadata.encode(), zipped(files)


def url_safe(body):
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")


def pypi(tree):
    packages = [("hearsay_alpha", "Requires-Dist: hearsay-beta\n", ALPHA_BYTES), ("hearsay_beta", "", BETA_BYTES)]
    for name, requires, size in packages:
        metadata, body = wheel(name, requires, size)
        file = f"{name}-1.0-py3-none-any.whl"
        path = f"/packages/{sha256(body)[:2]}/{sha256(body)[2:4]}/{sha256(body)[4:]}/{file}"
        tree.file(PYPI_FILES, path, body)
        tree.file(PYPI_FILES, path + ".metadata", metadata)
        tree.want("pip", file, body)
        pypi_page(tree, name.replace("_", "-"), file, path, sha256(body), sha256(metadata))


def pypi_page(tree, name, file, path, digest, metadata=""):
    """A project's page, in HTML and in JSON. Old releases, whose files are not there, make it longer."""
    url = f"https://{PYPI_FILES}{path}"
    extra = f' data-dist-info-metadata="sha256={metadata}" data-core-metadata="sha256={metadata}"' if metadata else ""
    old = [f"{name.replace('-', '_')}-0.{number}-py3-none-any.whl" for number in range(300)]
    olds = [(it, f"https://{PYPI_FILES}/packages/00/{sha256(it.encode())}/{it}", sha256(it.encode())) for it in old]
    html = f"<!DOCTYPE html>\n<html><head><meta name='pypi:repository-version' content='1.1'></head><body><h1>{name}</h1>\n"
    html += "".join(f'<a href="{url}#sha256={digest}">{it}</a><br/>\n' for it, url, digest in olds)
    html += f'<a href="{url}#sha256={digest}"{extra}>{file}</a><br/>\n</body></html>\n'
    files = [{"filename": it, "url": url, "hashes": {"sha256": digest}} for it, url, digest in olds]
    core = {"sha256": metadata} if metadata else False
    files.append({"filename": file, "url": url, "hashes": {"sha256": digest}, "core-metadata": core, "yanked": False})
    page = {"meta": {"api-version": "1.1"}, "name": name, "versions": ["1.0"], "files": files}
    form = "application/vnd.pypi.simple.v1+json"
    variant = (form, json.dumps(page).encode())
    headers = {"Cache-Control": "max-age=600, public", "Vary": "Accept, Accept-Encoding"}
    tree.index(
        PYPI, f"/simple/{name}/", html.encode(), content_type="text/html", variant=variant, headers=headers, packs=True
    )


def npm(tree):
    for name, dependencies, size in [
        ("hearsay-alpha", {"@hearsay/beta": "^1.0.0"}, ALPHA_BYTES),
        ("@hearsay/beta", {}, BETA_BYTES),
    ]:
        package = {"name": name, "version": "1.0.0", "main": "index.js", "dependencies": dependencies}
        inside = noise(f"npm {name}", size)
        files = [("package/package.json", json.dumps(package).encode()), ("package/index.js", b"\n")]
        body = tar_gz(files + [("package/data", inside)])
        path = f"/{name}/-/{name.split('/')[-1]}-1.0.0.tgz"
        tree.file(NPM, path, body)
        tree.want("npm", f"{name}/data", inside)
        dist = {"tarball": f"https://{NPM}{path}", "shasum": hashlib.sha1(body).hexdigest()}
        dist["integrity"] = "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()
        packument = {"_id": name, "name": name, "dist-tags": {"latest": "1.0.0"}}
        packument["versions"] = {"1.0.0": package | {"dist": dist}}
        packument["readme"] = "A readme of some length. " * 800
        headers = {"Cache-Control": "public, max-age=300", "Vary": "accept-encoding, accept"}
        more = {"content_type": "application/json", "headers": headers, "packs": True}
        # npm encodes the slash of a scope.
        for spelled in {name, name.replace("/", "%2f"), name.replace("/", "%2F")}:
            tree.index(NPM, f"/{spelled}", json.dumps(packument).encode(), **more)


def cargo(tree):
    config = {"dl": f"https://{CRATES_FILES}/crates", "api": "https://crates.io"}
    tree.index(CRATES, "/config.json", json.dumps(config).encode(), content_type="application/json")
    for name, size in [("hearsay-alpha", ALPHA_BYTES), ("hearsay-beta", BETA_BYTES)]:
        uses = name == "hearsay-alpha"
        manifest = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\ndescription = "x"\n'
        manifest += '[dependencies]\nhearsay-beta = "1"\n' if uses else ""
        files = [("Cargo.toml", manifest.encode()), ("src/lib.rs", b""), ("data", noise(f"crate {name}", size))]
        body = tar_gz([(f"{name}-1.0.0/{path}", part) for path, part in files])
        tree.file(CRATES_FILES, f"/crates/{name}/{name}-1.0.0.crate", body)
        tree.file(CRATES_FILES, f"/crates/{name}/1.0.0/download", body)
        tree.want("cargo", f"{name}-1.0.0.crate", body)
        need = {"name": "hearsay-beta", "req": "^1", "features": [], "optional": False, "default_features": True}
        need |= {"target": None, "kind": "normal"}
        line = {"name": name, "vers": "1.0.0", "deps": [need] if uses else [], "cksum": sha256(body)}
        line |= {"features": {}, "yanked": False}
        tree.index(CRATES, f"/he/ar/{name}", json.dumps(line).encode() + b"\n", content_type="text/plain")


def go(tree):
    beta = "require example.test/hearsay/beta v1.0.0\n"
    for name, requires, size in [("alpha", beta, ALPHA_BYTES), ("beta", "", BETA_BYTES)]:
        module = f"example.test/hearsay/{name}"
        mod = f"module {module}\n\ngo 1.19\n{requires}".encode()
        source = f"package {name}\n".encode()
        if requires:
            source += b'import _ "example.test/hearsay/beta"\n'
        files = [("go.mod", mod), (f"{name}.go", source), ("data", noise(f"go {name}", size))]
        body = zipped([(f"{module}@v1.0.0/{path}", part) for path, part in files])
        info = json.dumps({"Version": "v1.0.0", "Time": "2023-11-14T22:13:20Z"}).encode()
        tree.index(GO, f"/{module}/@v/list", b"v1.0.0\n", content_type="text/plain")
        tree.index(GO, f"/{module}/@latest", info, content_type="application/json")
        tree.file(GO, f"/{module}/@v/v1.0.0.info", info)
        tree.file(GO, f"/{module}/@v/v1.0.0.mod", mod)
        tree.file(GO, f"/{module}/@v/v1.0.0.zip", body)
        tree.want("go", f"{name}@v1.0.0.zip", body)


def maven(tree):
    """A parent without content, and two jars; the first needs any 1.x of the second, so its metadata is read."""
    head = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    parent = "<parent><groupId>test.hearsay</groupId><artifactId>parent</artifactId><version>1.0</version></parent>"
    need = "<dependencies><dependency><groupId>test.hearsay</groupId><artifactId>beta</artifactId>"
    need += "<version>[1.0,2.0)</version></dependency></dependencies>"
    poms = {
        "parent": f"{head}<groupId>test.hearsay</groupId><artifactId>parent</artifactId><version>1.0</version>"
        "<packaging>pom</packaging></project>",
        "alpha": f"{head}{parent}<artifactId>alpha</artifactId>{need}</project>",
        "beta": f"{head}{parent}<artifactId>beta</artifactId></project>",
    }
    for name, pom in poms.items():
        base = f"/maven2/test/hearsay/{name}/1.0/{name}-1.0"
        with_sum(tree.file, f"{base}.pom", pom.encode())
        size = {"alpha": ALPHA_BYTES, "beta": BETA_BYTES}.get(name)
        if size:
            jar = zipped([("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n"), ("data", noise(f"jar {name}", size))])
            with_sum(tree.file, f"{base}.jar", jar)
            tree.want("maven", f"{name}-1.0.jar", jar)
        versions = "<versioning><latest>1.0</latest><release>1.0</release><versions><version>1.0</version></versions></versioning>"
        metadata = f"<metadata><groupId>test.hearsay</groupId><artifactId>{name}</artifactId>{versions}</metadata>"
        with_sum(tree.index, f"/maven2/test/hearsay/{name}/maven-metadata.xml", metadata.encode())
    # Maven gives each extension this library, if it does not name one of its own. An empty one is enough.
    plexus = "/maven2/org/codehaus/plexus/plexus-utils/1.1/plexus-utils-1.1"
    with_sum(tree.file, f"{plexus}.jar", zipped([("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n")]))


def with_sum(add, path, body):
    add(MAVEN, path, body, content_type="text/xml" if not path.endswith(".jar") else "application/java-archive")
    add(MAVEN, path + ".sha1", hashlib.sha1(body).hexdigest().encode(), content_type="text/plain")
