//! The mesh in the status: this node's identity, its peers, and the sources of the latest objects.

use std::net::IpAddr;

use node::{PeerInfo, Recent};
use serde::{Deserialize, Serialize};
use wire::peer::{Capability, Gateway};

use crate::term;

/// How many digits of an identity people are shown.
const ID_SHOWN: usize = 8;

/// This node's identity and settings in the mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mesh {
    /// The scheme: `auto`, `ph-thcp`, `thcp` …
    pub scheme: String,
    /// The port for peers, on the mesh's interfaces.
    pub port: u16,
    /// Whether the nodes of this mesh share a secret.
    pub has_key: bool,
    /// The node's id, in hexadecimal.
    pub id: String,
    /// The node's public key, in hexadecimal, as other nodes list it in `gateways`.
    pub public_key: String,
    /// Why the identity lasts only until the daemon ends, if it does.
    pub is_temporary: Option<String>,
}

wire::counters! {
    /// A peer. Its counters restart at zero when it connects again.
    pub struct PeerLine, "peer_" {
        Mesh ("hearsay_peer_connected_seconds") {
            /// How long a peer has been connected.
            since_seconds: Gauge, Seconds;
        }
        Mesh ("hearsay_peer_unit_bytes_total", direction, "Bytes of units exchanged with a peer while it is connected.") {
            /// Received from it.
            units_in_bytes: Counter, Bytes, "in";
            /// Sent to it.
            units_out_bytes: Counter, Bytes, "out";
        }
        Mesh ("hearsay_peer_bytes_total", direction, "Bytes exchanged with a peer while it is connected, everything counted.") {
            /// Received from it.
            in_bytes: Counter, Bytes, "in";
            /// Sent to it.
            out_bytes: Counter, Bytes, "out";
        }
        + {
            /// The name that the peer gives itself.
            pub name: String,
            /// The peer's address.
            pub address: Option<IpAddr>,
            /// The peer's id, in hexadecimal.
            pub id: String,
            /// Whether the peer says that it is the gateway.
            pub is_gateway: bool,
            /// The gateway's address, according to the peer.
            pub gateway: Option<IpAddr>,
            /// The gateway's public key, in hexadecimal, according to the peer. Nothing proves it.
            pub gateway_key: Option<String>,
            /// The number of hops from the peer to the gateway, according to the peer.
            pub hops: Option<u32>,
            /// The peer's address in the mesh, according to the peer.
            pub mesh_address: Option<IpAddr>,
            /// What the peer can do, as far as this version knows it.
            pub capabilities: Vec<String>,
        }
    }
}

impl Mesh {
    /// Says in one line whether units are sealed.
    pub fn sealing(&self) -> &'static str {
        sealing(self.has_key)
    }
}

/// Says in one line whether units are sealed: they are if there is a mesh key.
pub fn sealing(has_key: bool) -> &'static str {
    match has_key {
        true => "on: units are kept and sent sealed with the mesh's key",
        false => "off: without a mesh key any node that overhears units can read them",
    }
}

impl PeerLine {
    /// The first digits of the peer's id.
    pub fn short_id(&self) -> &str {
        self.id.get(..ID_SHOWN).unwrap_or(&self.id)
    }

    /// Exchanged bytes that are no units' content, and all exchanged bytes.
    pub fn overhead(&self) -> (u64, u64) {
        let all = self.in_bytes + self.out_bytes;
        (all.saturating_sub(self.units_in_bytes + self.units_out_bytes), all)
    }
}

/// Where the bytes of an object came from, in a few words, like `here 40 %, router-3 60 %`.
pub fn whence(it: &Recent) -> String {
    let peer = if it.source.is_empty() { "peers" } else { &it.source };
    let peer = term::tame(peer, 24);
    let parts = [
        ("here", it.local_bytes),
        ("overheard", it.overheard_bytes + it.repaired_bytes),
        (&peer, it.peer_bytes),
        ("origin", it.origin_bytes),
    ];
    let all = parts.iter().map(|(_, bytes)| bytes).sum();
    // Sources whose share would round to 0 % are left out.
    let parts: Vec<_> = parts.into_iter().filter(|(_, bytes)| *bytes > all / 200).collect();
    match parts[..] {
        [] => "–".to_owned(),
        [(name, _)] => name.to_owned(),
        _ => {
            let part = |(name, bytes)| format!("{name} {}", term::percent(bytes, all));
            parts.into_iter().map(part).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The names of the capabilities that this version knows.
fn known(capabilities: &[Capability]) -> Vec<String> {
    capabilities.iter().filter_map(|it| it.name()).map(str::to_owned).collect()
}

impl From<&PeerInfo> for PeerLine {
    fn from(it: &PeerInfo) -> Self {
        Self {
            name: it.hello.name.clone(),
            address: Some(it.address),
            id: it.id.to_string(),
            is_gateway: it.hello.gateway == Gateway::Here,
            gateway: match it.hello.gateway {
                Gateway::Unknown => None,
                Gateway::Here => Some(it.address),
                Gateway::At(address) => Some(address),
            },
            gateway_key: it.hello.gateway_key.map(|key| key.to_string()),
            hops: it.hello.hops,
            mesh_address: it.hello.address,
            capabilities: known(&it.hello.capabilities),
            since_seconds: it.since_seconds,
            units_in_bytes: it.units_in_bytes,
            units_out_bytes: it.units_out_bytes,
            in_bytes: it.in_bytes,
            out_bytes: it.out_bytes,
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use wire::peer::Hello;

    /// A node of a mesh.
    pub fn in_mesh() -> Mesh {
        Mesh {
            scheme: "ph-thcp".into(),
            port: 3131,
            has_key: false,
            id: "1a2b3c4d5e6f70819a2b3c4d5e6f7081".into(),
            public_key: "ab".repeat(32),
            is_temporary: None,
        }
    }

    /// A peer that has sent this node many bytes.
    pub fn peer(name: &str, id: u8) -> PeerLine {
        PeerLine {
            name: name.into(),
            address: "10.77.0.4".parse().ok(),
            id: format!("{id:02x}").repeat(16),
            is_gateway: false,
            gateway: None,
            gateway_key: None,
            hops: None,
            mesh_address: None,
            capabilities: Vec::new(),
            since_seconds: 61,
            units_in_bytes: 98 << 20,
            units_out_bytes: 0,
            in_bytes: 99 << 20,
            out_bytes: 1 << 20,
        }
    }

    #[test]
    fn where_an_object_came_from_is_said_in_words() {
        let recent = |local_bytes, peer_bytes, origin_bytes, source: &str| {
            let source = source.into();
            whence(&Recent { local_bytes, peer_bytes, origin_bytes, source, ..Recent::default() })
        };
        assert_eq!(recent(5, 0, 0, "r2"), "here");
        assert_eq!(recent(0, 5, 0, "r2"), "r2");
        assert_eq!(recent(0, 5, 0, ""), "peers");
        assert_eq!(recent(1, 999, 0, "r2"), "r2");
        assert_eq!(recent(2, 3, 0, "r\n2"), "here 40 %, r?2 60 %");
        assert_eq!(recent(0, 0, 9, ""), "origin");
        assert_eq!(recent(0, 0, 0, ""), "–");
        let (overheard_bytes, repaired_bytes) = (6, 2);
        let mixed = Recent { peer_bytes: 2, overheard_bytes, repaired_bytes, ..Recent::default() };
        assert_eq!(whence(&mixed), "overheard 80 %, peers 20 %");
    }

    #[test]
    fn what_was_no_content_is_overhead() {
        assert_eq!(peer("r2", 1).overhead(), (2 << 20, 100 << 20));
        assert_eq!(peer("r2", 1).short_id(), "01010101");
    }

    #[test]
    fn a_peer_says_where_the_gateway_is() {
        let address: IpAddr = "10.77.0.4".parse().unwrap();
        let hello = |gateway| Hello {
            name: "r2".into(),
            gateway,
            capabilities: vec![Capability::HTTPS, Capability(999)],
            hops: Some(2),
            ..Hello::default()
        };
        let info = |gateway| PeerInfo {
            id: wire::NodeId([7; 16]),
            address,
            hello: hello(gateway),
            units_in_bytes: 1,
            units_out_bytes: 2,
            in_bytes: 3,
            out_bytes: 4,
            since_seconds: 5,
        };
        let line = PeerLine::from(&info(Gateway::Here));
        assert_eq!((line.is_gateway, line.gateway), (true, Some(address)));
        assert_eq!((line.hops, line.capabilities), (Some(2), vec!["https".to_owned()]));
        assert_eq!((line.id.as_str(), line.out_bytes), ("07".repeat(16).as_str(), 4));
        assert_eq!(PeerLine::from(&info(Gateway::Unknown)).gateway, None);
    }
}
