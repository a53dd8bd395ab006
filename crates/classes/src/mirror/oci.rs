//! Registries of containers: `/v2/…`, as the OCI distribution specification says.

use super::{Back, Mapped, Own, Refusal, Request, Upstreamed, at};
use crate::path::Clean;
use crate::reach::Authority;

/// What people call Docker's registry.
const DOCKER: [&str; 2] = ["docker.io", "index.docker.io"];

/// What a path below `/v2/` stands for. `ns=` names the registry, as containerd does; else the first part of the name,
/// if it is a host, as a mirror of Podman may be written; else it is Docker's.
pub(super) fn map(request: &Request<'_>, path: Clean<'_>) -> Result<Mapped, Refusal> {
    let name = &path.path["/v2/".len()..];
    if name.is_empty() {
        // Without a challenge here, clients ask for no token; the mirror does, where an upstream wants one.
        return Ok(Mapped::Own(Own { content_type: "application/json", body: "{}" }));
    }
    if name.contains("/blobs/uploads") {
        return Err(Refusal::new(403, "this mirror takes no uploads: push to the registry itself"));
    }
    let (space, query) = name_space(path.query.unwrap_or_default());
    let first = name.split_once('/').filter(|(first, _)| first.contains(['.', ':']));
    let here = "/v2/".to_owned();
    let (registry, name, here, back_query) = match (space, first) {
        (Some(registry), _) => (registry.clone(), name, here, format!("ns={registry}")),
        (None, Some((registry, name))) => {
            (registry.to_owned(), name, format!("/v2/{registry}/"), String::new())
        }
        (None, None) => (DOCKER[0].to_owned(), name, here, String::new()),
    };
    let is_docker = DOCKER.contains(&&*registry);
    let authority = match request.reach.classes.upstream("oci").filter(|_| is_docker) {
        Some(it) => Authority { tls: true, host: it.host.to_string(), port: it.port },
        None => request.allowed(&registry)?,
    };
    let library = if is_docker && is_official(name) { "library/" } else { "" };
    let query = if query.is_empty() { query } else { format!("?{query}") };
    let path = format!("/v2/{library}{name}{query}");
    let upstreamed = at(&authority, &path, "/v2", here);
    let back = Back { query: back_query, ..upstreamed.back };
    Ok(Mapped::Upstream(Upstreamed { back, ..upstreamed }))
}

/// The value of `ns`, and the query without it.
fn name_space(query: &str) -> (Option<String>, String) {
    let mut space = None;
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|it| !it.is_empty()) {
        match pair.strip_prefix("ns=") {
            // A port's colon may be encoded.
            Some(value) => space = Some(value.replace("%3A", ":").replace("%3a", ":")),
            None => rest.push(pair),
        }
    }
    (space.filter(|it| !it.is_empty()), rest.join("&"))
}

/// Whether a repository's name at Docker's registry has one part only: such images are in `library/`.
fn is_official(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    matches!(parts[..], [_, "manifests" | "blobs" | "referrers", _] | [_, "tags", "list"])
}
