//! The capture filter: a classic BPF program that the kernel runs on each frame (the kernel's
//! Documentation/networking/filter.rst), so that other traffic costs almost nothing.
//!
//! Accepted are: TCP from or to the peers' port, in IPv4 packets that are not fragments and in IPv6
//! packets without extension headers; on Ethernet, with at most one VLAN tag; on 802.11, after the
//! various headers of data frames. Aggregates (A-MSDU) are accepted whole, because a filter cannot
//! iterate over them. Of encrypted 802.11 data frames only the first bytes are accepted, so that
//! the status can say why nothing is overheard. `batch.rs` checks accepted frames again; all
//! others are lost.
//!
//! A program has an accumulator, an index register (here always the offset of the current header),
//! and a few words of memory. Jumps go only forwards; a load beyond the end of the frame rejects
//! it.

use libc::{
    BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP,
    BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MEM, BPF_OR, BPF_RET, BPF_ST, BPF_TAX, BPF_TXA,
    BPF_W, BPF_X,
};
use socket2::SockFilter;
use wire::capture::pcap;

/// Accepts all bytes of the frame (up to this number).
const WHOLE: u32 = 0x4_0000;
/// Accepts this number of bytes: usually the radiotap and 802.11 headers.
const HEADERS: u32 = 128;

/// Where the kernel provides the packet type, and the type of this machine's own frames.
const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
/// LLC and SNAP, and the first byte of the organisation.
const SNAP: u32 = 0xaaaa_0300;

/// First byte of an 802.11 frame: the mask of version, type and "no data"; the value of data
/// frames; the QoS bit.
const DATA_BITS: u32 = 0x4f;
const DATA: u32 = 0x08;
const QOS: u32 = 0x80;
/// Second byte.
const BOTH_DS: u32 = 0x03;
const FROM_DS: u32 = 0x02;
const MORE_FRAGMENTS: u32 = 0x04;
const PROTECTED: u32 = 0x40;
const HT_CONTROL: u32 = 0x80;
/// The two bytes of the QoS field.
const AGGREGATE: u32 = 0x80;
const MESH_CONTROL: u32 = 0x01;

/// Words of the program's memory: the end of the header; the frame's second byte; the QoS field's
/// second byte; an EtherType.
const END: u32 = 0;
const FLAGS: u32 = 1;
const QOS_HIGH: u32 = 2;
const TYPE: u32 = 3;

/// The filter for frames of this link type; `None` if the type is not supported.
pub fn program(link_type: u32, port: u16) -> Option<Vec<SockFilter>> {
    let mut it = Assembly::default();
    it.load(BPF_B | BPF_ABS, PACKET_TYPE);
    it.when(BPF_JEQ, OUTGOING, Label::Drop, Label::Next);
    match link_type {
        pcap::LINKTYPE_ETHERNET => it.ethernet(),
        pcap::LINKTYPE_IEEE802_11 => {
            it.op(BPF_LDX | BPF_IMM, 0);
            it.ieee80211();
        }
        pcap::LINKTYPE_IEEE802_11_RADIOTAP => {
            it.radiotap();
            it.ieee80211();
        }
        _ => return None,
    }
    it.ip(port.into());
    Some(it.finish())
}

/// The target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    /// The next instruction.
    Next,
    /// Rejects the frame.
    Drop,
    /// Accepts the frame.
    Take,
    /// Accepts its first bytes.
    Trim,
    Untagged,
    V6,
    Ports,
    ThreeAddresses,
    NoHtControl,
    Body,
    Qos,
    Mesh1,
    Mesh2,
    MeshSkip,
    Llc,
}

#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u32,
    value: u32,
    /// The targets if the condition is true, and if not.
    jumps: Option<(Label, Label)>,
}

/// A program with labels as jump targets.
#[derive(Debug, Default)]
struct Assembly {
    code: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
}

impl Assembly {
    /// Sets the index to the IP header, and loads the EtherType.
    fn ethernet(&mut self) {
        self.op(BPF_LDX | BPF_IMM, 14);
        self.load(BPF_H | BPF_ABS, 12);
        // A customer's VLAN tag that the kernel has not removed.
        self.when(BPF_JEQ, 0x8100, Label::Next, Label::Untagged);
        self.op(BPF_LDX | BPF_IMM, 18);
        self.load(BPF_H | BPF_ABS, 16);
        self.mark(Label::Untagged);
    }

    /// Sets the index to the 802.11 frame; the header's length is little-endian.
    fn radiotap(&mut self) {
        self.load(BPF_B | BPF_ABS, 3);
        self.op(BPF_ALU | BPF_LSH | BPF_K, 8);
        self.op(BPF_MISC_TAX, 0);
        self.load(BPF_B | BPF_ABS, 2);
        self.op(BPF_ALU | BPF_OR | BPF_X, 0);
        self.op(BPF_MISC_TAX, 0);
    }

    /// Moves the index from the 802.11 header to the IP header, and loads the EtherType.
    fn ieee80211(&mut self) {
        self.load(BPF_B | BPF_IND, 0);
        self.op(BPF_ALU | BPF_AND | BPF_K, DATA_BITS);
        self.when(BPF_JEQ, DATA, Label::Next, Label::Drop);
        self.load(BPF_B | BPF_IND, 1);
        self.op(BPF_ST, FLAGS);
        self.when(BPF_JSET, PROTECTED, Label::Trim, Label::Next);
        self.when(BPF_JSET, MORE_FRAGMENTS, Label::Drop, Label::Next);
        self.advance(24);
        self.op(BPF_ST, END);
        self.load(BPF_MEM, FLAGS);
        self.op(BPF_ALU | BPF_AND | BPF_K, BOTH_DS);
        self.when(BPF_JEQ, BOTH_DS, Label::Next, Label::ThreeAddresses);
        self.extend(6);
        self.mark(Label::ThreeAddresses);
        self.load(BPF_B | BPF_IND, 0);
        self.when(BPF_JSET, QOS, Label::Qos, Label::Body);
        self.mark(Label::Qos);
        self.qos();
        self.mark(Label::Body);
        self.llc();
    }

    /// Skips the fields that may follow the addresses: QoS, HT control, mesh control.
    fn qos(&mut self) {
        self.op(BPF_LDX | BPF_MEM, END);
        self.load(BPF_B | BPF_IND, 0);
        self.when(BPF_JSET, AGGREGATE, Label::Take, Label::Next);
        self.load(BPF_B | BPF_IND, 1);
        self.op(BPF_ST, QOS_HIGH);
        self.extend(2);
        self.load(BPF_MEM, FLAGS);
        self.when(BPF_JSET, HT_CONTROL, Label::Next, Label::NoHtControl);
        self.extend(4);
        self.mark(Label::NoHtControl);
        self.load(BPF_MEM, FLAGS);
        self.when(BPF_JSET, FROM_DS, Label::Next, Label::Body);
        self.load(BPF_MEM, QOS_HIGH);
        self.when(BPF_JSET, MESH_CONTROL, Label::Next, Label::Body);
        self.op(BPF_LDX | BPF_MEM, END);
        self.load(BPF_B | BPF_IND, 0);
        // With no, one or two addresses; other flags mean that it is not a mesh control field.
        self.when(BPF_JEQ, 0, Label::Next, Label::Mesh1);
        self.advance(6);
        self.go(Label::MeshSkip);
        self.mark(Label::Mesh1);
        self.when(BPF_JEQ, 1, Label::Next, Label::Mesh2);
        self.advance(12);
        self.go(Label::MeshSkip);
        self.mark(Label::Mesh2);
        self.when(BPF_JEQ, 2, Label::Next, Label::Body);
        self.advance(18);
        self.mark(Label::MeshSkip);
        self.op(BPF_ST, END);
    }

    /// Skips LLC and SNAP. Some hardware inserts two bytes before them if the header has an odd
    /// number of 16-bit words.
    fn llc(&mut self) {
        self.op(BPF_LDX | BPF_MEM, END);
        self.load(BPF_W | BPF_IND, 0);
        self.when(BPF_JEQ, SNAP, Label::Llc, Label::Next);
        self.advance(2);
        self.op(BPF_MISC_TAX, 0);
        self.load(BPF_W | BPF_IND, 0);
        self.when(BPF_JEQ, SNAP, Label::Next, Label::Drop);
        self.mark(Label::Llc);
        self.load(BPF_H | BPF_IND, 6);
        self.op(BPF_ST, TYPE);
        self.advance(8);
        self.op(BPF_MISC_TAX, 0);
        self.load(BPF_MEM, TYPE);
    }

    /// From the IP header to the end of the program; the accumulator has the EtherType.
    fn ip(&mut self, port: u32) {
        self.when(BPF_JEQ, IPV6, Label::V6, Label::Next);
        self.when(BPF_JEQ, IPV4, Label::Next, Label::Drop);
        self.load(BPF_B | BPF_IND, 9);
        self.when(BPF_JEQ, TCP, Label::Next, Label::Drop);
        // More fragments, or a fragment offset.
        self.load(BPF_H | BPF_IND, 6);
        self.when(BPF_JSET, 0x3fff, Label::Drop, Label::Next);
        self.load(BPF_B | BPF_IND, 0);
        self.op(BPF_ALU | BPF_AND | BPF_K, 0xf);
        self.op(BPF_ALU | BPF_LSH | BPF_K, 2);
        self.op(BPF_ALU | BPF_ADD | BPF_X, 0);
        self.op(BPF_MISC_TAX, 0);
        self.go(Label::Ports);
        self.mark(Label::V6);
        self.load(BPF_B | BPF_IND, 6);
        self.when(BPF_JEQ, TCP, Label::Next, Label::Drop);
        self.advance(40);
        self.op(BPF_MISC_TAX, 0);
        self.mark(Label::Ports);
        self.load(BPF_H | BPF_IND, 0);
        self.when(BPF_JEQ, port, Label::Take, Label::Next);
        self.load(BPF_H | BPF_IND, 2);
        self.when(BPF_JEQ, port, Label::Take, Label::Drop);
    }

    /// Adds the final instructions, and resolves the labels.
    fn finish(mut self) -> Vec<SockFilter> {
        for (label, bytes) in [(Label::Drop, 0), (Label::Take, WHOLE), (Label::Trim, HEADERS)] {
            self.mark(label);
            self.op(BPF_RET | BPF_K, bytes);
        }
        let resolve = |(at, it): (usize, &Instruction)| self.resolve(at, *it);
        self.code.iter().enumerate().map(resolve).collect()
    }

    fn resolve(&self, at: usize, it: Instruction) -> SockFilter {
        let (code, distance) = (it.code as u16, |label| self.distance(at, label));
        match it.jumps {
            None => SockFilter::new(code, 0, 0, it.value),
            Some((to, _)) if it.code == BPF_JMP | BPF_JA => {
                SockFilter::new(code, 0, 0, u32::from(distance(to)))
            }
            Some((yes, no)) => SockFilter::new(code, distance(yes), distance(no), it.value),
        }
    }

    /// The number of instructions that a jump skips; the programs are short enough for 8 bits.
    fn distance(&self, at: usize, label: Label) -> u8 {
        let place = self.labels.iter().find(|(it, _)| *it == label);
        let to = place.map_or(at + 1, |(_, to)| *to);
        (to - at - 1) as u8
    }

    /// Loads a value into the accumulator.
    fn load(&mut self, how: u32, from: u32) {
        self.op(BPF_LD | how, from);
    }

    /// Sets the accumulator to the index plus a number of bytes.
    fn advance(&mut self, bytes: u32) {
        self.op(BPF_MISC_TXA, 0);
        self.op(BPF_ALU | BPF_ADD | BPF_K, bytes);
    }

    /// Adds to the length of the header.
    fn extend(&mut self, bytes: u32) {
        self.load(BPF_MEM, END);
        self.op(BPF_ALU | BPF_ADD | BPF_K, bytes);
        self.op(BPF_ST, END);
    }

    fn op(&mut self, code: u32, value: u32) {
        self.code.push(Instruction { code, value, jumps: None });
    }

    fn when(&mut self, test: u32, value: u32, yes: Label, no: Label) {
        let jumps = Some((yes, no));
        self.code.push(Instruction { code: BPF_JMP | test | BPF_K, value, jumps });
    }

    fn go(&mut self, to: Label) {
        let jumps = Some((to, to));
        self.code.push(Instruction { code: BPF_JMP | BPF_JA, value: 0, jumps });
    }

    fn mark(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }
}

/// Copies the accumulator to the index, and the reverse.
const BPF_MISC_TAX: u32 = libc::BPF_MISC | BPF_TAX;
const BPF_MISC_TXA: u32 = libc::BPF_MISC | BPF_TXA;

/// Frames for the tests.
#[cfg(test)]
#[allow(dead_code, reason = "not every kind of frame is captured here")]
#[path = "../../../wire/tests/common/frames.rs"]
pub(super) mod frames;

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
