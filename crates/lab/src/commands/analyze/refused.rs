//! Counts of the packets that a capture holds and that bring no TCP segment.

use serde::{Serialize, Serializer};
use wire::capture::Refusal;

/// Packets without a TCP segment, by reason. As JSON: the names of the reasons with their counts, those above 0.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    counts: [u64; Refusal::ALL.len()],
    /// The first link type that was not read.
    link_type: Option<u32>,
}

impl Refused {
    /// Counts a packet of a frame of this link type.
    pub fn add(&mut self, why: Refusal, link_type: u32) {
        self.counts[why as usize] += 1;
        if why == Refusal::LinkType {
            self.link_type.get_or_insert(link_type);
        }
    }

    /// The number of packets.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The reasons with their counts as text.
    pub fn words(&self) -> String {
        let part = |(why, n): (Refusal, u64)| match self.link_type {
            Some(link_type) if why == Refusal::LinkType => {
                format!("{n} of a link type that is not read ({link_type})")
            }
            _ => format!("{n} {}", words(why)),
        };
        self.parts().map(part).collect::<Vec<_>>().join(", ")
    }

    /// The reason of most packets, and for a link type its number.
    pub fn most(&self) -> Option<(Refusal, Option<u32>)> {
        let (why, _) = self.parts().max_by_key(|&(_, n)| n)?;
        Some((why, self.link_type))
    }

    /// The reasons that occurred.
    fn parts(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.counts).filter(|&(_, n)| n > 0)
    }
}

impl Serialize for Refused {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.parts().map(|(why, n)| (why.name(), n)))
    }
}

fn words(why: Refusal) -> &'static str {
    match why {
        Refusal::LinkType => "of a link type that is not read",
        Refusal::Radiotap => "with a wrong radiotap header",
        Refusal::BadFcs => "with a wrong checksum",
        Refusal::Management => "802.11 management",
        Refusal::Control => "802.11 control",
        Refusal::Null => "802.11 without data",
        Refusal::Reserved => "802.11 of a reserved type",
        Refusal::Protected => "encrypted by 802.11",
        Refusal::LinkFragment => "fragments of 802.11",
        Refusal::NotIp => "not IP",
        Refusal::VlanTags => "with more than two VLAN tags",
        Refusal::Ip => "with a wrong IP header",
        Refusal::IpFragment => "fragments of IP",
        Refusal::NotTcp => "not TCP",
        Refusal::Tcp => "with a wrong TCP header",
        Refusal::Short => "cut before their headers end",
    }
}
