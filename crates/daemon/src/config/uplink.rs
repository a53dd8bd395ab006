//! Table `[uplink]`: the far end beyond the uplink, if there is one.

use std::fmt;

use wire::PublicKey;

use super::{Reader, file};

/// The port of far ends, where none is given.
pub const PORT_DEFAULT: u16 = 3144;

/// The settings of the uplink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uplink {
    /// The far end; `None`: requests go straight to their origins.
    pub far: Option<FarEnd>,
}

/// A far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarEnd {
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The key that it must prove.
    pub key: PublicKey,
}

impl fmt::Display for FarEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// One line.
impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.far {
            Some(far) => write!(f, "by {far}"),
            None => f.write_str("straight to origins"),
        }
    }
}

/// The host and the port of `HOST:PORT`, `HOST`, `[ADDRESS]:PORT` or `[ADDRESS]`.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        None if rest.is_empty() => PORT_DEFAULT,
        None => return None,
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    (!host.is_empty() && host.chars().all(is_host)).then(|| (host.to_owned(), port))
}

impl Reader<'_> {
    pub(super) fn uplink(&mut self, file: file::Uplink) -> Uplink {
        let (Some(far), Some(key)) = (&file.far, &file.far_key) else {
            let lone =
                file.far.map(|far| (far, "far-key")).or(file.far_key.map(|key| (key, "far")));
            if let Some((there, missing)) = lone {
                let text = format!("[uplink] needs `{missing}` as well: `hearsay far` prints both");
                self.wrong.add(self.source.place_of(&there), text);
            }
            return Uplink::default();
        };
        let place = self.source.place_of(far);
        let Some((host, port)) = host_and_port(far.get_ref()) else {
            let text = format!(
                "{:?} is not a host and a port, like far.example.org:{PORT_DEFAULT}",
                far.get_ref()
            );
            self.wrong.add(place, text);
            return Uplink::default();
        };
        match key.get_ref().parse() {
            Ok(key) => Uplink { far: Some(FarEnd { host, port, key }) },
            Err(_) => {
                let text = format!(
                    "{:?} is no key: `hearsay far` prints it, 64 hexadecimal digits",
                    key.get_ref()
                );
                self.wrong.add(self.source.place_of(key), text);
                Uplink::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load};
    use super::*;

    #[test]
    fn a_far_end_is_a_host_a_port_and_a_key() {
        let key = "ab".repeat(32);
        let load_far = |far: &str| {
            let text = format!("[uplink]\nfar = \"{far}\"\nfar-key = \"{key}\"");
            load(&text).unwrap().uplink.far.map(|far| (far.host.clone(), far.port, far.to_string()))
        };
        let far = load_far("far.example.org");
        assert_eq!(far, Some(("far.example.org".into(), 3144, "far.example.org:3144".into())));
        let far = load_far("[2001:db8::1]:99");
        assert_eq!(far, Some(("2001:db8::1".into(), 99, "[2001:db8::1]:99".into())));
        assert_eq!(load("").unwrap().uplink, Uplink::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let wrong = complaint("[uplink]\nfar = \"a b\"\nfar-key = \"00\"");
        assert_eq!(wrong, "h.toml:2: \"a b\" is not a host and a port, like far.example.org:3144");
        assert!(complaint("[uplink]\nfar = \"h:1\"").contains("needs `far-key` as well"));
        assert!(
            complaint("[uplink]\nfar = \"h:1\"\nfar-key = \"xy\"")
                .contains("h.toml:3: \"xy\" is no key")
        );
    }
}
