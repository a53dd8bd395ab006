"""A registry of containers as Docker's: a token that anyone gets, and blobs on another host."""

import gzip
import json

from content import noise, sha256, tar

REGISTRY = "registry-1.docker.io"
TOKENS = "auth.docker.io"
BLOBS = "production.cloudflare.docker.com"
IMAGE = "library/hearsay"
TOKEN = "a-token-that-anyone-gets"
CHALLENGE = f'Bearer realm="https://{TOKENS}/token",service="registry.docker.io",scope="repository:{IMAGE}:pull"'

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def oci(tree):
    answer = {"token": TOKEN, "access_token": TOKEN, "expires_in": 300, "issued_at": "2023-11-14T22:13:20Z"}
    tree.add(TOKENS, "/token", json.dumps(answer).encode(), "other", content_type="application/json")
    tree.add(REGISTRY, "/v2/", b"{}", "other", content_type="application/json", token=TOKEN, challenge=CHALLENGE)
    platforms = []
    for architecture in ["amd64", "arm64"]:
        manifest = image(tree, architecture)
        platform = {"os": "linux", "architecture": architecture}
        platforms.append(description(MANIFEST, manifest) | {"platform": platform})
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": platforms}).encode()
    named(tree, index, INDEX, "index")
    tree.index(REGISTRY, f"/v2/{IMAGE}/manifests/1", index, **protected(INDEX, index))


def image(tree, architecture):
    """Adds the blobs of an image, and returns its manifest."""
    layers = [tar([("data", noise(f"layer {architecture} {number}", 1_500_000))]) for number in range(2)]
    history = [f"sha256:{sha256(layer)}" for layer in layers]
    config = {"os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": history}}
    config = json.dumps(config | {"config": {}}).encode()
    packed = [gzip.compress(layer, 1, mtime=0) for layer in layers]
    for body in [config, *packed]:
        blob(tree, body)
        if architecture == "amd64":
            tree.want("oci", sha256(body), body)
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST}
    manifest["config"] = description("application/vnd.oci.image.config.v1+json", config)
    manifest["layers"] = [description("application/vnd.oci.image.layer.v1.tar+gzip", body) for body in packed]
    manifest = json.dumps(manifest).encode()
    named(tree, manifest, MANIFEST, "file")
    return manifest


def description(media_type, body):
    return {"mediaType": media_type, "digest": f"sha256:{sha256(body)}", "size": len(body)}


def named(tree, manifest, media_type, kind):
    path = f"/v2/{IMAGE}/manifests/sha256:{sha256(manifest)}"
    tree.add(REGISTRY, path, manifest, kind, **protected(media_type, manifest))


def protected(media_type, body):
    headers = {"Docker-Content-Digest": f"sha256:{sha256(body)}"}
    return {"content_type": media_type, "headers": headers, "token": TOKEN, "challenge": CHALLENGE}


def blob(tree, body, served=None):
    """A blob that the registry redirects to another host. `served` is what that host sends, if something else."""
    digest = sha256(body)
    path = f"/registry-v2/docker/registry/v2/blobs/sha256/{digest[:2]}/{digest}/data"
    place = {"Location": f"https://{BLOBS}{path}?expires=1700000000&signature=abc"}
    more = {"status": 307, "headers": place, "token": TOKEN, "challenge": CHALLENGE}
    tree.add(REGISTRY, f"/v2/{IMAGE}/blobs/sha256:{digest}", b"", "other", **more)
    tree.file(BLOBS, path, body if served is None else served)
