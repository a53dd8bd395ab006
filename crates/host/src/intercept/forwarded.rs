//! Traffic of clients that is only forwarded, as counters of our own nftables table count it.
//!
//! *What this is:* the chain with its counters, as a part of [`Rules::ruleset`](super::Rules::ruleset), and the reader of
//! nft's list of them. A packet counts with its IP header. *Limits:* when the table is replaced, its counters begin at
//! zero; packets that a flowtable carries are not seen.

use super::{Bridged, Error, TABLE_NAME, query, quoted, words};

wire::reasons! {
    /// Kinds of forwarded traffic.
    pub enum Kind {
        /// TCP with port 443.
        Tls = "tls",
        /// UDP with port 443.
        Quic = "quic",
        /// All other.
        Other = "other",
    }
}

wire::counters! {
    /// What was forwarded, with IP headers.
    #[derive(Copy)]
    pub struct ForwardedBytes, "forwarded_" {
        Clients ("hearsay_forwarded_bytes_total", direction, "Bytes that were only forwarded between intercepted interfaces and others, with IP headers, by kind.") {
            /// From clients.
            up_bytes: Counter, Bytes, "up";
            /// To clients.
            down_bytes: Counter, Bytes, "down";
        }
    }
}

/// What was forwarded, by [`Kind::ALL`].
pub type Forwarded = [ForwardedBytes; Kind::ALL.len()];

/// The counters and their chain, for clients on these interfaces. What these bridges pass from port to port is not
/// counted: it comes by here, too.
pub(super) fn chain(interfaces: &[String], bridged: &Bridged) -> String {
    let mut text = String::new();
    for kind in Kind::ALL.map(Kind::name) {
        text += &format!("  counter {kind}_up {{ }}\n  counter {kind}_down {{ }}\n");
    }
    text += "  chain forwarded {\n    type filter hook forward priority filter; policy accept;\n";
    let [four, six] = bridged;
    for bridge in four.iter().chain(six.iter().filter(|it| !four.contains(it))) {
        text += &format!("    iifname \"{bridge}\" oifname \"{bridge}\" return\n");
    }
    for (from, port, way) in [("iifname", "dport", "up"), ("oifname", "sport", "down")] {
        for kind in Kind::ALL {
            let matches = match kind {
                Kind::Tls => format!("tcp {port} 443 "),
                Kind::Quic => format!("udp {port} 443 "),
                Kind::Other => String::new(),
            };
            let (interfaces, kind) = (quoted(interfaces), kind.name());
            text += &format!("    {from} {interfaces} {matches}counter name {kind}_{way} return\n");
        }
    }
    text + "  }\n"
}

/// Reads the counters; `None` if the table has none.
///
/// # Errors
/// If nft is missing or not permitted.
pub fn forwarded() -> Result<Option<Forwarded>, Error> {
    let listing = query("nft", &words(&format!("list counters table inet {TABLE_NAME}")))?;
    Ok(listing.and_then(|text| read(&text)))
}

/// Reads nft's list. Counters that are not ours are left out; `None` if all are.
fn read(listing: &str) -> Option<Forwarded> {
    let mut found = false;
    let (mut all, mut name) = (Forwarded::default(), "");
    for line in listing.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("counter ") {
            name = rest.split([' ', '{']).next().unwrap_or_default();
        }
        let bytes = line.split(' ').skip_while(|it| *it != "bytes").nth(1);
        let Some(bytes) = bytes.and_then(|it| it.parse().ok()) else { continue };
        for (kind, count) in Kind::ALL.iter().zip(&mut all) {
            match name.strip_prefix(kind.name()) {
                Some("_up") => count.up_bytes = bytes,
                Some("_down") => count.down_bytes = bytes,
                _ => continue,
            }
            found = true;
        }
    }
    found.then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nfts_list_is_read() {
        // As nft 1.0.6 prints it.
        let listing = "table inet hearsay {\n\tcounter tls_up {\n\t\tpackets 3 bytes 180\n\t}\n\tcounter quic_down {\n\t\t\
                       packets 1 bytes 18446744073709551615\n\t}\n\tcounter of_another {\n\t\tpackets 9 bytes 9\n\t}\n}\n";
        let read_ = read(listing).unwrap();
        assert_eq!(read_[Kind::Tls as usize], ForwardedBytes { up_bytes: 180, down_bytes: 0 });
        assert_eq!(read_[Kind::Quic as usize].down_bytes, u64::MAX);
        assert_eq!(read_[Kind::Other as usize], ForwardedBytes::default());
        assert_eq!(read("table inet hearsay {\n}\n"), None);
        assert_eq!(read("counter tls_up { packets x bytes y }"), None);
    }
}
