//! A slow and simple reader of capture files.

use std::fs;
use std::path::Path;

/// A captured frame.
#[derive(Debug)]
pub struct Record {
    pub nanoseconds: u64,
    pub radiotap_length: usize,
    /// The bytes from the 802.11 header on.
    pub frame: Vec<u8>,
}

/// Reads a complete capture of link type 127, radiotap.
#[track_caller]
pub fn read(path: &Path) -> Vec<Record> {
    let bytes = fs::read(path).expect("there is a capture");
    assert_eq!(word(&bytes, 0), 0xa1b2_3c4d, "the magic number of nanoseconds");
    assert_eq!(word(&bytes, 20), 127, "the link type");
    let mut records = Vec::new();
    let mut at = 24;
    while at < bytes.len() {
        let (length, original) = (word(&bytes, at + 8), word(&bytes, at + 12));
        assert_eq!(length, original, "a frame is cut short");
        let packet = &bytes[at + 16..][..length as usize];
        let radiotap_length = usize::from(u16::from_le_bytes([packet[2], packet[3]]));
        records.push(Record {
            nanoseconds: u64::from(word(&bytes, at)) * 1_000_000_000
                + u64::from(word(&bytes, at + 4)),
            radiotap_length,
            frame: packet[radiotap_length..].to_vec(),
        });
        at += 16 + length as usize;
    }
    records
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl Record {
    pub fn is_data(&self) -> bool {
        self.frame[0] == 0x08
    }

    pub fn is_ack(&self) -> bool {
        self.frame[0] == 0xd4
    }

    /// The receiving router, from the last byte of its address, counted from 0; another number for
    /// broadcasts.
    pub fn to(&self) -> u8 {
        self.frame[9].wrapping_sub(1)
    }

    /// The router that sent this data frame.
    pub fn from(&self) -> u8 {
        self.frame[15].wrapping_sub(1)
    }

    /// The bytes of TCP from port 80.
    pub fn tcp_of_server(&self) -> Option<&[u8]> {
        let packet = self.frame.get(24..).filter(|_| self.is_data())?;
        let ip = packet.strip_prefix(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0])?;
        assert_eq!(ip[0], 0x45, "IPv4 without options");
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let tcp = ip.get(20..length).filter(|tcp| ip[9] == 6 && tcp[..2] == [0, 80])?;
        tcp.get(usize::from(tcp[12] >> 4) * 4..)
    }
}
