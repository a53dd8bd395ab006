//! Links in HTML: `href` of the element `a`.

use memchr::memchr;
use wire::Digest;

use super::Rewriter;
use super::target::Target;

/// Reads a text, and holds back each tag of a link until its end is there.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The tag, from `<` on.
    held: Vec<u8>,
    /// The quotation mark within which the tag is read.
    quote: Option<u8>,
}

impl Scanner {
    /// What is held back.
    pub(super) fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    pub(super) fn feed(&mut self, target: &mut Target, mut input: &[u8], out: &mut Vec<u8>) {
        loop {
            if self.held.is_empty() {
                let Some(at) = memchr(b'<', input) else { break };
                out.extend_from_slice(&input[..at]);
                input = &input[at..];
                self.held.push(b'<');
                input = &input[1..];
            }
            let Some((byte, rest)) = input.split_first() else { break };
            self.add(target, *byte, out);
            input = rest;
        }
        out.extend_from_slice(input);
    }

    /// Adds a byte to the tag.
    fn add(&mut self, target: &mut Target, byte: u8, out: &mut Vec<u8>) {
        let is_link = match self.held.len() {
            1 => matches!(byte, b'a' | b'A'),
            2 => byte.is_ascii_whitespace(),
            length => length < Rewriter::HELD_MAX,
        };
        if !is_link {
            out.append(&mut self.held);
            self.quote = None;
            // What follows may be a tag.
            if byte == b'<' {
                self.held.push(byte)
            } else {
                out.push(byte)
            }
            return;
        }
        self.held.push(byte);
        match (self.quote, byte) {
            (None, b'"' | b'\'') => self.quote = Some(byte),
            (Some(quote), byte) if quote == byte => self.quote = None,
            (None, b'>') => {
                rewrite(target, &self.held, out);
                self.held.clear();
            }
            _ => {}
        }
    }
}

/// Rewrites a tag.
fn rewrite(target: &mut Target, tag: &[u8], out: &mut Vec<u8>) {
    let replaced = href(tag).and_then(|at| {
        let link = &tag[at..];
        let length = value_end(tag, at) - at;
        let link = &link[..length];
        Some((at, target.replaced(link, digest(link))?))
    });
    let Some((at, replaced)) = replaced else {
        out.extend_from_slice(tag);
        return;
    };
    out.extend_from_slice(&tag[..at]);
    out.extend_from_slice(replaced.by.as_bytes());
    out.extend_from_slice(&tag[at + replaced.length..]);
}

/// Where the value of the first `href` begins, after its quotation mark.
fn href(tag: &[u8]) -> Option<usize> {
    let mut at = 2;
    loop {
        at +=
            tag.get(at..)?.iter().take_while(|it| it.is_ascii_whitespace() || **it == b'/').count();
        let is_name = |it: &&u8| !it.is_ascii_whitespace() && !matches!(it, b'=' | b'>' | b'/');
        let name = &tag[at..at + tag[at..].iter().take_while(is_name).count()];
        at = blanks(tag, at + name.len());
        if tag.get(at) == Some(&b'=') {
            at = blanks(tag, at + 1);
            at += usize::from(matches!(tag.get(at), Some(b'"' | b'\'')));
            if name.eq_ignore_ascii_case(b"href") {
                return Some(at);
            }
            at = value_end(tag, at) + usize::from(matches!(tag.get(at - 1), Some(b'"' | b'\'')));
        } else if name.is_empty() {
            return None;
        }
    }
}

/// The end of the attribute's value that begins at a place, after its quotation mark if it has one.
fn value_end(tag: &[u8], at: usize) -> usize {
    let ends = |it: &u8| match tag[at - 1] {
        quote @ (b'"' | b'\'') => *it == quote,
        _ => it.is_ascii_whitespace() || *it == b'>',
    };
    tag[at..].iter().position(ends).map_or(tag.len(), |length| at + length)
}

fn blanks(tag: &[u8], at: usize) -> usize {
    at + tag.get(at..).unwrap_or_default().iter().take_while(|it| it.is_ascii_whitespace()).count()
}

/// The digest in a link's fragment: `#sha256=DIGITS` (PEP 503).
fn digest(link: &[u8]) -> Option<Digest> {
    let at = memchr(b'#', link)?;
    let fragment = std::str::from_utf8(&link[at + 1..]).ok()?;
    let digits = fragment.strip_prefix("sha256=").or_else(|| fragment.strip_prefix("sha512="))?;
    Digest::from_hex(digits).ok()
}
