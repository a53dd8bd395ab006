//! Which frames reach us: a program of classic BPF that the kernel runs on each (the kernel's
//! Documentation/networking/filter.rst), so that what is no traffic between peers costs next to nothing.
//!
//! What passes: TCP from or to the peers' port, in IPv4 without fragments and in IPv6 without extension
//! headers; on Ethernet with at most one VLAN tag; on 802.11 behind the headers of data frames as they
//! vary. Aggregates (A-MSDU) pass whole: the program cannot walk them. Of data frames that are encrypted
//! on the link the first bytes pass, so that somebody can be told why nothing is overheard. What passes
//! is looked through again in `batch.rs`; what does not is lost.
//!
//! A program has an accumulator, an index (here always: where the header begins that is read), and a few
//! words of memory. Jumps go forwards; a load from beyond the frame ends it, and the frame does not pass.

use libc::{
    BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP,
    BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MEM, BPF_OR, BPF_RET, BPF_ST, BPF_TAX, BPF_TXA,
    BPF_W, BPF_X,
};
use socket2::SockFilter;
use wire::capture::pcap;

/// Passes with at most so many bytes: all of them.
const WHOLE: u32 = 0x4_0000;
/// Headers of radiotap and 802.11, as a rule.
const HEADERS: u32 = 128;

/// Where the kernel tells whom a frame is for, and what it says of our own.
const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
/// LLC with SNAP, and the first byte of the organisation.
const SNAP: u32 = 0xaaaa_0300;

/// Of the first byte of an 802.11 frame: version, type, and whether there is no data; what data is.
const DATA_BITS: u32 = 0x4f;
const DATA: u32 = 0x08;
const QOS: u32 = 0x80;
/// Of the second.
const BOTH_DS: u32 = 0x03;
const FROM_DS: u32 = 0x02;
const MORE_FRAGMENTS: u32 = 0x04;
const PROTECTED: u32 = 0x40;
const HT_CONTROL: u32 = 0x80;
/// Of the two of QoS.
const AGGREGATE: u32 = 0x80;
const MESH_CONTROL: u32 = 0x01;

/// Words of the program's memory: where the header ends; second byte of the frame; of QoS; a type.
const END: u32 = 0;
const FLAGS: u32 = 1;
const QOS_HIGH: u32 = 2;
const TYPE: u32 = 3;

/// The program for frames of this link type; `None` if there is none.
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

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    /// On.
    Next,
    /// The frame does not pass.
    Drop,
    /// It passes.
    Take,
    /// Its first bytes pass.
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
    /// Where it leads if true, and if not.
    jumps: Option<(Label, Label)>,
}

/// A program whose jumps lead to labels.
#[derive(Debug, Default)]
struct Assembly {
    code: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
}

impl Assembly {
    /// To where the IP header is, with its type.
    fn ethernet(&mut self) {
        self.op(BPF_LDX | BPF_IMM, 14);
        self.load(BPF_H | BPF_ABS, 12);
        // A customer's tag that the kernel has not taken off.
        self.when(BPF_JEQ, 0x8100, Label::Next, Label::Untagged);
        self.op(BPF_LDX | BPF_IMM, 18);
        self.load(BPF_H | BPF_ABS, 16);
        self.mark(Label::Untagged);
    }

    /// To where the frame is, behind a header that says its length, the lower byte first.
    fn radiotap(&mut self) {
        self.load(BPF_B | BPF_ABS, 3);
        self.op(BPF_ALU | BPF_LSH | BPF_K, 8);
        self.op(BPF_MISC_TAX, 0);
        self.load(BPF_B | BPF_ABS, 2);
        self.op(BPF_ALU | BPF_OR | BPF_X, 0);
        self.op(BPF_MISC_TAX, 0);
    }

    /// From where the 802.11 header is to where the IP header is, with its type.
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

    /// What may follow the addresses: QoS, HT control, mesh control.
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
        // Without, with one or with two addresses; anything else is no mesh control field.
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

    /// LLC and SNAP, perhaps behind two bytes that some hardware puts behind a header of an odd number
    /// of words.
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

    /// From an IP header, with its type, to the end.
    fn ip(&mut self, port: u32) {
        self.when(BPF_JEQ, IPV6, Label::V6, Label::Next);
        self.when(BPF_JEQ, IPV4, Label::Next, Label::Drop);
        self.load(BPF_B | BPF_IND, 9);
        self.when(BPF_JEQ, TCP, Label::Next, Label::Drop);
        // More fragments, or not the first.
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

    /// What the frame passes with.
    fn finish(mut self) -> Vec<SockFilter> {
        for (label, bytes) in [(Label::Drop, 0), (Label::Take, WHOLE), (Label::Trim, HEADERS)] {
            self.mark(label);
            self.op(BPF_RET | BPF_K, bytes);
        }
        let resolve = |(at, it): (usize, &Instruction)| self.resolve(at, *it);
        self.code.iter().enumerate().map(resolve).collect()
    }

    fn resolve(&self, at: usize, it: Instruction) -> SockFilter {
        let (code, way) = (it.code as u16, |label| self.way(at, label));
        match it.jumps {
            None => SockFilter::new(code, 0, 0, it.value),
            Some((to, _)) if it.code == BPF_JMP | BPF_JA => {
                SockFilter::new(code, 0, 0, u32::from(way(to)))
            }
            Some((yes, no)) => SockFilter::new(code, way(yes), way(no), it.value),
        }
    }

    /// How many instructions a jump leaves out: the programs are shorter than what fits.
    fn way(&self, at: usize, label: Label) -> u8 {
        let place = self.labels.iter().find(|(it, _)| *it == label);
        let to = place.map_or(at + 1, |(_, to)| *to);
        (to - at - 1) as u8
    }

    /// Loads into the accumulator.
    fn load(&mut self, how: u32, from: u32) {
        self.op(BPF_LD | how, from);
    }

    /// What is so far behind the index, into the accumulator.
    fn advance(&mut self, bytes: u32) {
        self.op(BPF_MISC_TXA, 0);
        self.op(BPF_ALU | BPF_ADD | BPF_K, bytes);
    }

    /// The header is longer.
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

/// Between accumulator and index.
const BPF_MISC_TAX: u32 = libc::BPF_MISC | BPF_TAX;
const BPF_MISC_TXA: u32 = libc::BPF_MISC | BPF_TXA;

/// Frames to try things on.
#[cfg(test)]
#[allow(dead_code, reason = "not every kind of frame is captured here")]
#[path = "../../../wire/tests/common/frames.rs"]
pub(super) mod frames;

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
