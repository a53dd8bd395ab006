//! Settings of the log of requests.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::file;
use super::{Config, ConfigError, Place, Reader, Size};

/// A smaller file would be renamed all the time.
const SIZE_MIN: Size = Size::mib(1);
const SIZE_DEFAULT: Size = Size::mib(16);
/// Each old file is renamed when the newest one is full.
const KEEP_MAX: u32 = 99;
const KEEP_DEFAULT: u32 = 4;

/// How a line of the log of requests is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As squid's native access.log.
    #[default]
    Squid,
    /// As the combined log of web servers, with squid's result at the end.
    Combined,
    /// A JSON object.
    Json,
}

impl Format {
    const ALL: [(&str, Self); 3] =
        [("squid", Self::Squid), ("combined", Self::Combined), ("json", Self::Json)];
}

/// How clients are named in the log of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// By their addresses.
    #[default]
    Address,
    /// By keyed hashes of their addresses.
    Hash,
}

impl Naming {
    const ALL: [(&str, Self); 2] = [("address", Self::Address), ("hash", Self::Hash)];
}

/// The settings of the log of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// The file; `None`: requests are not logged.
    pub file: Option<PathBuf>,
    /// How a line is written.
    pub format: Format,
    /// How clients are named.
    pub clients: Naming,
    /// How many bytes the file may have before it is renamed, and a new one begun.
    pub size_bytes: u64,
    /// How many old files are kept.
    pub keep: u32,
}

impl Requests {
    /// The directory of the file, where old files are kept too.
    pub fn dir(&self) -> Option<&Path> {
        self.file.as_deref().and_then(Path::parent)
    }
}

impl Reader<'_> {
    pub(super) fn requests(&mut self, file: file::Log) -> Requests {
        let keep = file.keep.map(|keep| {
            if *keep.get_ref() > KEEP_MAX {
                self.complain(&keep, &format!("[log] keep: at most {KEEP_MAX} old files"));
            }
            keep.into_inner()
        });
        Requests {
            file: file.requests.and_then(|text| self.log_file(&text)),
            format: self.word(file.format, "is no format", &Format::ALL),
            clients: self.word(file.clients, "names no clients", &Naming::ALL),
            size_bytes: file.size.map_or(SIZE_DEFAULT, Spanned::into_inner).0,
            keep: keep.unwrap_or(KEEP_DEFAULT),
        }
    }

    fn word<T: Copy + Default>(
        &mut self,
        text: Option<Spanned<String>>,
        is_none: &str,
        words: &[(&str, T)],
    ) -> T {
        text.and_then(|text| self.choice(&text, is_none, words)).unwrap_or_default()
    }

    /// The file's path; `None` for an empty text: OpenWrt's settings have no other word for "off".
    fn log_file(&mut self, text: &Spanned<String>) -> Option<PathBuf> {
        if text.get_ref().is_empty() {
            return None;
        }
        let path = self.path("[log] requests", text);
        if path.parent().is_none_or(|dir| dir == Path::new("/")) || path.file_name().is_none() {
            let advice = "give it a directory of its own, like /var/log/hearsay/requests.log";
            self.complain(text, &format!("[log] requests: {:?}: {advice}", text.get_ref()));
        }
        Some(path)
    }
}

impl Config {
    pub(super) fn check_requests(&self, wrong: &mut ConfigError) {
        let size = Size(self.requests.size_bytes);
        if size < SIZE_MIN {
            wrong.add("[log] size", format!("{size} is too little: at least {SIZE_MIN}"));
        }
        if let (Some(dir), Place::Dir(store)) = (self.requests.dir(), &self.store.place)
            && dir.starts_with(store)
        {
            let text = "is in the store's directory: give it a directory of its own";
            wrong.add("[log] requests", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load};
    use super::*;

    #[test]
    fn the_log_of_requests_is_off_unless_it_has_a_file() {
        let off = load("").unwrap().requests;
        assert_eq!((off.file, off.format, off.clients), (None, Format::Squid, Naming::Address));
        assert_eq!((off.size_bytes, off.keep), (16 << 20, 4));
        assert_eq!(load("[log]\nrequests = \"\"").unwrap().requests.file, None);
        let text = "[log]\nrequests = \"/var/log/h/r.log\"\nformat = \"json\"\nclients = \"hash\"\n\
                    size = \"1MiB\"\nkeep = 0";
        let on = load(text).unwrap().requests;
        assert_eq!(on.dir(), Some(Path::new("/var/log/h")));
        assert_eq!((on.format, on.clients), (Format::Json, Naming::Hash));
        assert_eq!((on.size_bytes, on.keep), (1 << 20, 0));
    }

    #[test]
    fn a_mistake_is_said_with_its_line() {
        for (text, expected) in [
            (
                "requests = \"r.log\"",
                "h.toml:2: [log] requests: \"r.log\" is relative: give the whole path, from / on",
            ),
            (
                "requests = \"/r.log\"",
                "h.toml:2: [log] requests: \"/r.log\": give it a directory of its own, like /var/log/hearsay/requests.log",
            ),
            (
                "requests = \"/var/cache/hearsay/r.log\"",
                "h.toml:2: [log] requests: is in the store's directory: give it a directory of its own",
            ),
            (
                "format = \"clf\"",
                "h.toml:2: \"clf\" is no format: \"squid\" or \"combined\" or \"json\"",
            ),
            ("clients = \"no\"", "h.toml:2: \"no\" names no clients: \"address\" or \"hash\""),
            ("size = 5", "h.toml:2: [log] size: 5 is too little: at least 1MiB"),
            ("keep = 100", "h.toml:2: [log] keep: at most 99 old files"),
        ] {
            assert_eq!(complaint(&format!("[log]\n{text}")), expected);
        }
    }
}
