//! What a user writes so that a client uses the mirror.

/// The clients that [`setup`] knows.
pub const SETUPS: [&str; 10] =
    ["apt", "pip", "npm", "cargo", "go", "maven", "docker", "podman", "opkg", "apk"];

/// The lines for a client, with comments that say where they belong. `base` is the mirror's address, such as
/// `http://192.0.2.1:3142`. `None` for a client that is not in [`SETUPS`].
pub fn setup(client: &str, base: &str) -> Option<String> {
    let template = match client {
        "apt" => APT,
        "pip" => PIP,
        "npm" => NPM,
        "cargo" => CARGO,
        "go" => GO,
        "maven" => MAVEN,
        "docker" => DOCKER,
        "podman" => PODMAN,
        "opkg" => OPKG,
        "apk" => APK,
        _ => return None,
    };
    let authority = base.strip_prefix("http://").unwrap_or(base);
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let text = template.replace("{base}", base).replace("{authority}", authority);
    Some(text.replace("{host}", host))
}

const APT: &str = "\
# /etc/apt/sources.list: put the mirror before the host of each line, without https://. For example:
deb {base}/apt/deb.debian.org/debian stable main
deb {base}/apt/deb.debian.org/debian-security stable-security main
# Ubuntu:
# deb {base}/apt/archive.ubuntu.com/ubuntu noble main universe
# deb {base}/apt/security.ubuntu.com/ubuntu noble-security main universe
# In /etc/apt/sources.list.d/*.sources, change the lines `URIs:` alike.
";

const PIP: &str = "\
# /etc/pip.conf, or ~/.config/pip/pip.conf for one user
[global]
index-url = {base}/pypi/simple/
trusted-host = {host}
";

const NPM: &str = "\
; ~/.npmrc, or .npmrc of a project
registry={base}/npm/
; The mirror takes no reports on what is installed.
audit=false
";

const CARGO: &str = "\
# ~/.cargo/config.toml
[source.crates-io]
replace-with = \"hearsay\"

[source.hearsay]
registry = \"sparse+{base}/cargo/\"
";

const GO: &str = "\
# In a shell, once for each user. Sums are still checked: the mirror serves sum.golang.org too.
go env -w GOPROXY={base}/go,direct
";

const MAVEN: &str = "\
<!-- ~/.m2/settings.xml -->
<settings>
  <mirrors>
    <mirror>
      <id>hearsay</id>
      <mirrorOf>central</mirrorOf>
      <url>{base}/maven/</url>
    </mirror>
  </mirrors>
</settings>
<!-- Another repository is at {base}/maven/HOST/PATH, in a mirror of its own. -->
";

const DOCKER: &str = "\
# /etc/docker/daemon.json holds the text from { to }; then: systemctl restart docker
# Docker asks a mirror for images of docker.io only.
{
  \"registry-mirrors\": [\"{base}\"],
  \"insecure-registries\": [\"{authority}\"]
}
# containerd: the same for any registry, here ghcr.io, in /etc/containerd/certs.d/ghcr.io/hosts.toml:
# server = \"https://ghcr.io\"
# [host.\"{base}\"]
# capabilities = [\"pull\", \"resolve\"]
";

const PODMAN: &str = "\
# /etc/containers/registries.conf.d/hearsay.conf; Buildah, Skopeo and CRI-O read it as well.
[[registry]]
location = \"docker.io\"
[[registry.mirror]]
location = \"{authority}/docker.io\"
insecure = true

[[registry]]
location = \"ghcr.io\"
[[registry.mirror]]
location = \"{authority}/ghcr.io\"
insecure = true

[[registry]]
location = \"quay.io\"
[[registry.mirror]]
location = \"{authority}/quay.io\"
insecure = true
";

const OPKG: &str = "\
# In a shell on an OpenWrt device, up to release 24.10. Signatures are still checked.
sed -i 's|https\\{0,1\\}://downloads.openwrt.org|{base}/openwrt|' /etc/opkg/distfeeds.conf
opkg update
# Later releases have apk:
# sed -i 's|https\\{0,1\\}://downloads.openwrt.org|{base}/openwrt|' /etc/apk/repositories.d/distfeeds.list
";

const APK: &str = "\
# In a shell on Alpine Linux. Signatures are still checked.
sed -i 's|https\\{0,1\\}://dl-cdn.alpinelinux.org/alpine|{base}/alpine|' /etc/apk/repositories
apk update
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_lines_with_the_mirrors_address() {
        for client in SETUPS {
            let text = setup(client, "http://192.0.2.1:3142").unwrap();
            let names = ["{base}", "{authority}", "{host}"];
            assert!(text.contains("192.0.2.1:3142"), "{client}");
            assert!(names.iter().all(|it| !text.contains(it)), "{client}");
        }
        assert_eq!(setup("yum", "http://192.0.2.1:3142"), None);
    }

    #[test]
    fn pip_is_told_the_host_without_port() {
        let text = setup("pip", "http://[2001:db8::1]:3142").unwrap();
        assert!(text.contains("trusted-host = [2001:db8::1]\n"));
    }
}
