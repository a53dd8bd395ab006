//! Records as a peer would make them that dialled the origin.

use super::liar::Said;
use bytes::Bytes;
use content::{Cutter, Entry, ManifestBuilder, Profile, Root, Sealer, Segment, name};
use node::testing::Peers;
use node::{Audience, OPEN_KEY, Target, named};
use wire::peer::{ChunkHead, Head, Message, Request, Source, Want, segment_signed};
use wire::{ChunkId, ObjectKey, Oid, PublicKey, RecordId, Signature};

/// The name of the object at a URL, in a mesh without a key.
fn key(url: &str) -> ObjectKey {
    key_under(url, &OPEN_KEY)
}

/// The name of the object at a URL, in the mesh with this key.
pub fn key_under(url: &str, secret: &[u8; 32]) -> ObjectKey {
    let uri: http::Uri = url.parse().expect("a URL");
    Target::read(&uri).expect("a target").key(secret, Audience::Everyone)
}

/// A record with its manifest and its units, signed by a peer.
pub struct Forged {
    pub head: Head,
    pub segments: Vec<(Signature, Vec<u8>)>,
    pub units: Vec<(ChunkId, Bytes)>,
}

impl Forged {
    /// What one says who has asked the origin for this URL and got these bytes.
    pub fn new(peers: &Peers, url: &str, body: &Bytes) -> Self {
        let (segments, units) = cut(body);
        let mut head = Head {
            confirmed: false,
            record: RecordId([7; 16]),
            status: 200,
            fields: vec![("cache-control".into(), b"max-age=60".to_vec())],
            selecting: Vec::new(),
            signer: peers.own_key(),
            signature: Signature([0; 64]),
            age: 0,
            length: Some(body.len() as u64),
            status_line: String::new(),
        };
        head.signature = peers.sign(&head.signed(&key(url)));
        let mut forged = Self { head, segments: Vec::new(), units };
        segments.iter().for_each(|segment| forged.sign(peers, segment));
        forged
    }

    /// The name of the object that is published with these bytes, and the messages of a router that has it. They carry
    /// no signature.
    pub fn named(body: &Bytes) -> (Oid, Self) {
        let (cut, units) = cut(body);
        let none = Signature([0; 64]);
        let segments: Vec<_> = cut.iter().map(|segment| (none, segment.encode())).collect();
        let root = Root {
            length: body.len() as u64,
            content: Root::digest(body),
            segments: segments.iter().map(|(_, bytes)| Segment::digest(bytes)).collect(),
        };
        let head = Head {
            confirmed: false,
            record: named::record_id(&root.name()),
            status: 200,
            fields: vec![(named::ROOT.into(), root.encode().into_bytes())],
            selecting: Vec::new(),
            signer: PublicKey([0; 32]),
            signature: none,
            age: 0,
            length: Some(root.length),
            status_line: String::new(),
        };
        (root.name(), Self { head, segments, units })
    }

    /// A record whose manifest goes on and on, of units that do not exist.
    pub fn endless(peers: &Peers, url: &str, segments: usize) -> Self {
        let mut forged = Self::new(peers, url, &Bytes::new());
        let mut builder = ManifestBuilder::new(Profile::DEFAULT);
        forged.head.length = None;
        forged.segments.clear();
        for number in 0_u64.. {
            let id = name(&number.to_le_bytes());
            let entry = Entry { id, length: 16 * 1024, parent_end: false, key: None };
            if let Some(segment) = builder.push(entry) {
                forged.sign(peers, &segment);
            }
            if forged.segments.len() == segments {
                break;
            }
        }
        forged
    }

    /// A record of these units. Each is listed with the given length, which may be false, in a segment of its own.
    pub fn listing(peers: &Peers, url: &str, units: &[(u32, Bytes)]) -> Self {
        let mut forged = Self::new(peers, url, &Bytes::new());
        let mut builder = ManifestBuilder::new(Profile::DEFAULT);
        forged.segments.clear();
        for (length, bytes) in units {
            let entry = Entry { id: name(bytes), length: *length, parent_end: false, key: None };
            forged.units.push((entry.id, bytes.clone()));
            builder.push(entry);
            if let Some(segment) = builder.flush() {
                forged.sign(peers, &segment);
            }
        }
        forged.sign(peers, &builder.close());
        forged.head.length = Some(units.iter().map(|(length, _)| u64::from(*length)).sum());
        forged
    }

    /// What one says in a mesh with this key: all units are sealed, and listed as `bend` leaves them.
    pub fn sealed(
        peers: &Peers,
        url: &str,
        body: &Bytes,
        secret: &[u8; 32],
        bend: fn(&mut Entry),
    ) -> Self {
        let mut forged = Self::new(peers, url, &Bytes::new());
        let mut builder = ManifestBuilder::new(Profile::DEFAULT);
        forged.segments.clear();
        for (_, unit) in cut(body).1 {
            let mut bytes = unit.to_vec();
            let key = Some(Sealer::new(secret).seal(&mut bytes));
            let (id, length) = (name(&bytes), bytes.len() as u32);
            let mut entry = Entry { id, length, parent_end: false, key };
            bend(&mut entry);
            forged.units.push((id, bytes.into()));
            builder.push(entry).iter().for_each(|segment| forged.sign(peers, segment));
        }
        forged.sign(peers, &builder.close());
        forged.head.length = Some(body.len() as u64);
        forged.head.signature = peers.sign(&forged.head.signed(&key_under(url, secret)));
        forged
    }

    /// The same with a head that was changed, and is signed all the same.
    pub fn with_head(mut self, peers: &Peers, url: &str, change: impl FnOnce(&mut Head)) -> Self {
        change(&mut self.head);
        self.head.signature = peers.sign(&self.head.signed(&key(url)));
        for (signature, bytes) in &mut self.segments {
            let digest = Segment::digest(bytes);
            *signature = peers.sign(&segment_signed(&self.head.record, &digest));
        }
        self
    }

    fn sign(&mut self, peers: &Peers, segment: &Segment) {
        let bytes = segment.encode();
        let digest = Segment::digest(&bytes);
        self.segments.push((peers.sign(&segment_signed(&self.head.record, &digest)), bytes));
    }

    /// The head and the whole manifest.
    pub fn told(&self, request: Request) -> Vec<Said> {
        let head = Message::Head(request, Box::new(self.head.clone()));
        let segments = self.segments.iter().map(|(signature, bytes)| {
            Message::Segment(request, Box::new(*signature), bytes.clone())
        });
        std::iter::once(head).chain(segments).map(Said::Message).collect()
    }

    /// The head, the whole manifest, and all units, before a peer wants them.
    pub fn all(&self, request: Request) -> Vec<Said> {
        let units = self.units.iter().map(|(name, bytes)| chunk(*name, bytes));
        self.told(request).into_iter().chain(units).collect()
    }

    /// The units that are wanted.
    pub fn units(&self, wants: &[Want]) -> Vec<Said> {
        let wanted = |(name, _): &&(ChunkId, Bytes)| wants.iter().any(|want| want.name == *name);
        self.units.iter().filter(wanted).map(|(name, bytes)| chunk(*name, bytes)).collect()
    }
}

/// A whole unit in one frame, under this name.
pub fn chunk(name: ChunkId, bytes: &Bytes) -> Said {
    let total = bytes.len() as u32;
    let head = ChunkHead { name, total, offset: 0, length: total, source: Source::Held };
    Said::Chunk(head, bytes.clone())
}

/// The manifest of an object, and its units.
pub fn cut(body: &Bytes) -> (Vec<Segment>, Vec<(ChunkId, Bytes)>) {
    let mut cutter = Cutter::new(Profile::DEFAULT);
    let mut builder = ManifestBuilder::new(Profile::DEFAULT);
    let (mut segments, mut units) = (Vec::new(), Vec::new());
    let (mut rest, mut begin) = (&body[..], 0);
    loop {
        let cut = cutter.cut(rest);
        rest = cut.map_or(&[], |cut| &rest[cut.consumed..]);
        let Some(cut) = cut.or_else(|| cutter.finish()) else { break };
        let unit = body.slice(begin..begin + cut.length as usize);
        begin += unit.len();
        let (id, length, parent_end) = (name(&unit), cut.length, cut.parent_end);
        segments.extend(builder.push(Entry { id, length, parent_end, key: None }));
        units.push((id, unit));
    }
    segments.push(builder.close());
    (segments, units)
}
