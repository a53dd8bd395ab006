//! Verifies content in one pass against all that is known of it: length, digests, OID and, of a file, the manifest.

use std::fs::File;
use std::io::Read as _;

use content::{ChunkId, Key};
use sha2::{Digest as _, Sha256 as Hasher};

use super::digest::{self, Sha256};
use crate::control::UnitLine;
use crate::exit::Failure;

/// Bytes per read, at most; a chunk of the manifest may be shorter.
const PIECE_BYTES: usize = 64 << 10;

/// What a file must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// The file's length, in bytes.
    pub length: Option<u64>,
    /// SHA-256s of the whole file, each with its source.
    pub sha256: Vec<(&'static str, Sha256)>,
    /// The BLAKE3 hash that the file's OID certifies.
    pub blake3: Option<[u8; 32]>,
    /// The file's chunks, in order, by the daemon's manifest.
    pub units: Option<Vec<Unit>>,
}

/// A chunk in the daemon's manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The hash of the chunk's bytes as they are stored (sealed, if there is a key).
    pub name: ChunkId,
    /// The chunk's length in bytes.
    pub length: u32,
    /// The key that the chunk was sealed with, if any.
    pub key: Option<Key>,
}

impl Unit {
    /// Parses a line of the control socket; `None` if it is malformed.
    pub fn of(line: &UnitLine) -> Option<Self> {
        let key = line.key.as_deref().map(blake3::Hash::from_hex).transpose().ok()?;
        Some(Self { name: line.name.parse().ok()?, length: line.length, key: key.map(Into::into) })
    }

    /// Whether these plaintext bytes are the chunk's.
    fn is(&self, clear: &[u8]) -> bool {
        let sealed = self.key.map(|key| {
            let mut unit = clear.to_vec();
            content::cipher(&key, &mut unit);
            unit
        });
        clear.len() == self.length as usize
            && content::name(sealed.as_deref().unwrap_or(clear)) == self.name
    }
}

/// Length and digests of content, as it is read or as it arrives.
#[derive(Clone, Debug)]
pub struct Sums {
    length: u64,
    sha256: Option<Hasher>,
    blake3: Option<Box<blake3::Hasher>>,
}

impl Sums {
    /// Of no bytes yet, with these digests.
    pub fn new(has_sha256: bool, has_blake3: bool) -> Self {
        Self {
            length: 0,
            sha256: has_sha256.then(Hasher::new),
            blake3: has_blake3.then(Box::default),
        }
    }

    /// Adds bytes at the end.
    pub fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let Some(hasher) = &mut self.sha256 {
            hasher.update(bytes);
        }
        if let Some(hasher) = &mut self.blake3 {
            hasher.update(bytes);
        }
    }

    /// Bytes that were added.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Checks all promises but the chunks; returns what was verified against, for the report. A digest that was not
    /// made matches no promise.
    pub fn check(self, promises: &Promises) -> Result<Vec<String>, Failure> {
        let mut kept = check_length(self.length, promises)?;
        let sha256 = self.sha256.map(|hasher| hasher.finalize().into()).unwrap_or_default();
        kept.extend(check_sha256(sha256, promises)?);
        if let Some(promised) = promises.blake3 {
            if self.blake3.is_none_or(|hasher| *hasher.finalize().as_bytes() != promised) {
                return Err(broken("its BLAKE3 does not match the OID".to_owned()));
            }
            kept.push("BLAKE3 (OID)".to_owned());
        }
        Ok(kept)
    }
}

/// Verifies the file; returns what it was verified against, for the report.
pub async fn verify(file: &mut File, promises: &Promises) -> Result<Vec<String>, Failure> {
    let mut sums = Sums::new(!promises.sha256.is_empty(), promises.blake3.is_some());
    let mut units = promises.units.iter().flatten();
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let unit = units.next();
        let wanted = unit.map_or(PIECE_BYTES, |unit| unit.length as usize).min(PIECE_BYTES);
        let piece = &mut buffer[..wanted];
        let got = read_full(file, piece)?;
        let piece = &piece[..got];
        if let Some(unit) = unit.filter(|unit| !unit.is(piece)) {
            let (name, from) = (unit.name, sums.length);
            return Err(broken(format!(
                "the {got} bytes from {from} on are not the unit {name} of the daemon's manifest"
            )));
        }
        sums.add(piece);
        if got == 0 && unit.is_none() {
            break;
        }
        // Lets Ctrl-C interrupt the verification of a large file.
        tokio::task::yield_now().await;
    }
    let mut kept = sums.check(promises)?;
    if let Some(units) = &promises.units {
        let plural = if units.len() == 1 { "" } else { "s" };
        kept.push(format!("{} unit{plural} of the daemon's manifest", units.len()));
    }
    Ok(kept)
}

fn check_length(length: u64, promises: &Promises) -> Result<Vec<String>, Failure> {
    match promises.length {
        Some(promised) if promised != length => {
            Err(broken(format!("{length} bytes arrived instead of {promised}")))
        }
        Some(_) => Ok(vec!["length".to_owned()]),
        None => Ok(Vec::new()),
    }
}

fn check_sha256(digest: Sha256, promises: &Promises) -> Result<Vec<String>, Failure> {
    for (who, promised) in &promises.sha256 {
        if *promised != digest {
            let (is, promised) = (digest::to_hex(&digest), digest::to_hex(promised));
            return Err(broken(format!("its SHA-256 is {is}, but {who} says {promised}")));
        }
    }
    Ok(promises.sha256.iter().map(|(who, _)| format!("SHA-256 ({who})")).collect())
}

fn broken(what: String) -> Failure {
    Failure::unverified(format!("the content failed its verification: {what}"))
}

fn read_full(file: &mut File, buffer: &mut [u8]) -> Result<usize, Failure> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Failure::failed(format!("cannot read the file to verify it: {error}")));
            }
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;
    use crate::exit::Exit;

    fn check(bytes: &[u8], promises: &Promises) -> Result<Vec<String>, Failure> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        crate::control::tests::run(verify(&mut file, promises))
    }

    fn units(pieces: &[&[u8]]) -> Option<Vec<Unit>> {
        let unit = |piece: &&[u8]| Unit {
            name: content::name(piece),
            length: piece.len() as u32,
            key: None,
        };
        Some(pieces.iter().map(unit).collect())
    }

    #[test]
    fn sealed_units_are_held_against_their_sealed_bytes() {
        let mut sealed = b"hello".to_vec();
        let key = content::Sealer::new(&[1; 32]).seal(&mut sealed);
        let name = content::name(&sealed).to_string();
        let line =
            |key: &str| UnitLine { name: name.clone(), length: 5, key: Some(key.to_owned()) };
        let unit = Unit::of(&line(&blake3::Hash::from(key).to_string())).unwrap();
        let promises = Promises { units: Some(vec![unit]), ..Promises::default() };
        assert_eq!(check(b"hello", &promises).unwrap(), ["1 unit of the daemon's manifest"]);
        assert!(check(b"hallo", &promises).is_err() && check(&sealed, &promises).is_err());
        for key in ["", "00", &"x".repeat(64)] {
            assert_eq!(Unit::of(&line(key)), None, "{key:?}");
        }
    }

    #[test]
    fn kept_promises_are_named() {
        let digest: Sha256 = Hasher::digest(b"hello").into();
        let promises = Promises {
            length: Some(5),
            sha256: vec![("Repr-Digest", digest)],
            blake3: Some(content::Root::digest(b"hello")),
            units: units(&[b"he", b"llo"]),
        };
        let kept = check(b"hello", &promises).unwrap();
        let expected =
            ["length", "SHA-256 (Repr-Digest)", "BLAKE3 (OID)", "2 units of the daemon's manifest"];
        assert_eq!(kept, expected);
        assert_eq!(check(b"hello", &Promises::default()), Ok(Vec::new()));
    }

    #[test]
    fn each_broken_promise_is_found() {
        for (promises, what) in [
            (Promises { length: Some(6), ..Promises::default() }, "5 bytes arrived instead of 6"),
            (Promises { sha256: vec![("--sha256", [0; 32])], ..Promises::default() }, "--sha256"),
            (Promises { blake3: Some([0; 32]), ..Promises::default() }, "BLAKE3"),
            (Promises { units: units(&[b"he", b"lla"]), ..Promises::default() }, "from 2 on"),
            (Promises { units: units(&[b"hello", b"x"]), ..Promises::default() }, "from 5 on"),
        ] {
            let failure = check(b"hello", &promises).unwrap_err();
            assert_eq!(failure.exit, Exit::Unverified);
            assert!(failure.message.contains(what), "{failure}");
        }
    }
}
