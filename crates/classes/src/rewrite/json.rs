//! Links in JSON.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr2;
use wire::Digest;

use super::target::Target;
use super::{Rewrite, Rewriter};
use crate::json::{Members, inner};

/// Reads a text, and holds back each object that can have a link until its end is there: its digest may follow the link.
#[derive(Debug)]
pub(super) struct Scanner {
    rewrite: Rewrite,
    place: Place,
    /// How many objects and arrays are open.
    depth: usize,
    /// The string that is read, or was read last.
    string: Short,
    /// Whether the string and a colon precede this place.
    is_named: bool,
    /// The depth within the array of files.
    files: Option<usize>,
    object: Object,
    held: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Between,
    Within,
    Escaped,
}

/// The object that can have a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    None,
    /// It is held back; this many objects and arrays are open around it.
    Held(usize),
    /// It is too long: its rest passes as it is.
    Passed(usize),
}

/// The first bytes of a string.
#[derive(Debug, Default)]
struct Short {
    bytes: [u8; 8],
    length: usize,
}

impl Short {
    fn add(&mut self, text: &[u8]) {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let fits = room.len().min(text.len());
        room[..fits].copy_from_slice(&text[..fits]);
        self.length = self.length.saturating_add(text.len());
    }

    fn is(&self, text: &str) -> bool {
        self.bytes.get(..self.length) == Some(text.as_bytes())
    }
}

impl Scanner {
    pub(super) fn new(rewrite: Rewrite) -> Self {
        Self {
            rewrite,
            place: Place::Between,
            depth: 0,
            string: Short::default(),
            is_named: false,
            files: None,
            object: Object::None,
            held: Vec::new(),
        }
    }

    /// What is held back.
    pub(super) fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    pub(super) fn feed(&mut self, target: &mut Target, input: &[u8], out: &mut Vec<u8>) {
        let mut begin = 0;
        let mut at = 0;
        while at < input.len() {
            if self.place != Place::Between {
                at = self.skip_string(input, at);
                continue;
            }
            let byte = input[at];
            match byte {
                b'{' | b'[' => {
                    if byte == b'{' && self.object == Object::None && self.has_link() {
                        out.extend_from_slice(&input[begin..at]);
                        begin = at;
                        self.object = Object::Held(self.depth);
                    }
                    if byte == b'[' && self.opens_files() {
                        self.files = Some(self.depth + 1);
                    }
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.files > Some(self.depth) {
                        self.files = None;
                    }
                    if self.is_end() {
                        self.hold(target, &input[begin..=at], out);
                        self.end(target, out);
                        begin = at + 1;
                    }
                }
                b'"' => {
                    self.place = Place::Within;
                    self.string = Short::default();
                }
                _ => {}
            }
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.is_named = byte == b':';
            }
            at += 1;
        }
        self.hold(target, &input[begin..], out);
    }

    /// Reads on within a string; gives the place after what was read.
    fn skip_string(&mut self, input: &[u8], at: usize) -> usize {
        if self.place == Place::Escaped {
            self.place = Place::Within;
            self.string.add(&input[at..=at]);
            return at + 1;
        }
        let rest = &input[at..];
        let Some(length) = memchr2(b'"', b'\\', rest) else {
            self.string.add(rest);
            return input.len();
        };
        self.string.add(&rest[..length]);
        if rest[length] == b'\\' {
            self.string.add(b"\\");
            self.place = Place::Escaped;
        } else {
            self.place = Place::Between;
        }
        at + length + 1
    }

    /// Whether the object that begins here can have a link.
    fn has_link(&self) -> bool {
        match self.rewrite {
            Rewrite::Pypi => self.files == Some(self.depth),
            Rewrite::Npm => self.is_named && self.string.is("dist"),
            Rewrite::Cargo => self.depth == 0,
        }
    }

    fn opens_files(&self) -> bool {
        let is_listed =
            self.rewrite == Rewrite::Pypi && self.depth == 1 && self.object == Object::None;
        is_listed && self.is_named && self.string.is("files")
    }

    fn is_end(&mut self) -> bool {
        match self.object {
            Object::Held(depth) => depth == self.depth,
            Object::Passed(depth) => {
                if depth == self.depth {
                    self.object = Object::None;
                }
                false
            }
            Object::None => false,
        }
    }

    /// Holds bytes back, or adds them to `out` if no object is held.
    fn hold(&mut self, target: &mut Target, bytes: &[u8], out: &mut Vec<u8>) {
        let Object::Held(depth) = self.object else {
            out.extend_from_slice(bytes);
            return;
        };
        let fits = bytes.len().min(Rewriter::HELD_MAX - self.held.len());
        self.held.extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() {
            self.end(target, out);
            out.extend_from_slice(&bytes[fits..]);
            // If its end was read, `feed` calls `end` next.
            self.object = Object::Passed(depth);
        }
    }

    /// Rewrites what is held.
    fn end(&mut self, target: &mut Target, out: &mut Vec<u8>) {
        let mut from = 0;
        for (range, by) in edits(target, &self.held) {
            out.extend_from_slice(&self.held[from..range.start]);
            out.extend_from_slice(by.as_bytes());
            from = range.end;
        }
        out.extend_from_slice(&self.held[from..]);
        self.held.clear();
        self.object = Object::None;
    }
}

/// What is replaced in an object, in its order.
fn edits(target: &mut Target, object: &[u8]) -> Vec<(Range<usize>, String)> {
    let texts = |name: &'static str| {
        let members = Members::of(object).filter(move |it| it.name == name.as_bytes());
        members.filter_map(|it| inner(object, &it.value))
    };
    let (name, digest) = match target.rewrite {
        Rewrite::Pypi => ("url", sha256(object)),
        Rewrite::Npm => {
            ("tarball", texts("integrity").last().and_then(|it| integrity(&object[it])))
        }
        Rewrite::Cargo => return texts("dl").map(|it| (it, target.crates())).collect(),
    };
    let edit = |it: Range<usize>| {
        let replaced = target.replaced(&object[it.clone()], digest)?;
        Some((it.start..it.start + replaced.length, replaced.by))
    };
    texts(name).filter_map(edit).collect()
}

/// `hashes.sha256` of a file of PEP 691.
fn sha256(object: &[u8]) -> Option<Digest> {
    let hashes = Members::of(object).filter(|it| it.name == b"hashes").last()?;
    Digest::from_hex(crate::json::text_of(&object[hashes.value], "sha256")?).ok()
}

/// The SHA-512 digest in a text of Subresource Integrity.
fn integrity(text: &[u8]) -> Option<Digest> {
    let text = std::str::from_utf8(text).ok()?.replace("\\/", "/");
    let base64 = text.split(' ').find_map(|it| it.strip_prefix("sha512-"))?;
    let bytes = STANDARD.decode(base64.split('?').next()?).ok()?;
    Some(Digest::Sha512(bytes.try_into().ok()?))
}
