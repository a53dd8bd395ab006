//! The node's identity to its peers: a secret of 32 bytes in the store's directory, created at the
//! first start.

use crate::config::Place;
use crate::entropy;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The file's name in the store's directory.
const NAME: &str = "identity";
/// The file's temporary name while it is being written.
const UNFINISHED: &str = "identity.new";

/// The seed of an Ed25519 key.
pub struct Identity {
    /// The seed.
    pub seed: [u8; 32],
    /// Why the identity lasts only until the daemon ends; `None` if it is stored.
    pub is_temporary: Option<String>,
}

impl Identity {
    /// Reads the identity from the store's directory, or creates it if there is none. If it can be
    /// neither read nor created, returns a temporary identity.
    pub fn of(store: &Place) -> Self {
        let kept = match store {
            Place::Memory => Err("the store is in memory: give [store] a path to keep it".into()),
            Place::Dir(dir) => kept(dir),
        };
        match kept {
            Ok(seed) => Self { seed, is_temporary: None },
            Err(why) => {
                tracing::warn!(
                    "this node's identity is temporary, and changes at the next start: {why}"
                );
                Self { seed: entropy::bytes(), is_temporary: Some(why) }
            }
        }
    }
}

fn kept(dir: &Path) -> Result<[u8; 32], String> {
    let path = dir.join(NAME);
    let failed = |what, error: io::Error| format!("{}: cannot be {what}: {error}", path.display());
    match fs::read(&path) {
        Ok(bytes) => bytes.try_into().map_err(|bytes: Vec<u8>| {
            let (path, length) = (path.display(), bytes.len());
            format!(
                "{path}: {length} bytes instead of 32: put a copy back, or remove it for a new one"
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let seed = entropy::bytes();
            make(dir, &seed).map_err(|error| failed("written", error))?;
            Ok(seed)
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// Writes the file atomically and durably.
fn make(dir: &Path, seed: &[u8; 32]) -> io::Result<()> {
    let unfinished = dir.join(UNFINISHED);
    // An interrupted start may have left this file. Only one daemon at a time uses the store, so no
    // other daemon is writing the file now.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(seed)?;
    file.sync_all()?;
    fs::rename(&unfinished, dir.join(NAME))?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn it_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(UNFINISHED), "cut short").unwrap();
        let place = Place::Dir(dir.path().to_owned());
        let (first, second) = (Identity::of(&place), Identity::of(&place));
        assert_eq!((first.seed, first.is_temporary), (second.seed, None));
        let path = dir.path().join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_ne!(first.seed, [0; 32]);
    }

    #[test]
    fn a_broken_one_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "short").unwrap();
        let place = Place::Dir(dir.path().to_owned());
        let (first, second) = (Identity::of(&place), Identity::of(&place));
        assert_ne!(first.seed, second.seed);
        let why = first.is_temporary.unwrap();
        assert!(why.contains("identity: 5 bytes instead of 32") && why.contains("remove it"));
        assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), b"short");
    }

    #[test]
    fn without_a_place_it_is_temporary() {
        for place in [Place::Memory, Place::Dir("/nowhere/at/all".into())] {
            assert!(Identity::of(&place).is_temporary.is_some());
        }
    }
}
