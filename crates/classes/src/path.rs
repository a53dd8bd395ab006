//! Paths that every reader reads alike, and patterns for them.

use crate::glob::Glob;

/// The longest path, in bytes, that a table judges.
pub(crate) const PATH_MAX: usize = 4096;

/// A path that no server can read as another one: no empty segment but the last, no `.` or `..`, also not encoded, no
/// backslash, no control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clean<'a> {
    /// The path, without query; it begins with `/`.
    pub(crate) path: &'a str,
    /// What follows `?`.
    pub(crate) query: Option<&'a str>,
    /// How many slashes are encoded (`%2f`): one only in names of npm's scopes.
    slashes: usize,
}

impl<'a> Clean<'a> {
    /// The parts of a path with query; `None` if its meaning is not clear.
    pub(crate) fn new(text: &'a str) -> Option<Self> {
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        let is_visible =
            text.bytes().all(|it| it.is_ascii_graphic() && !b"\\#\"<>`{}".contains(&it));
        if text.len() > PATH_MAX || !is_visible {
            return None;
        }
        let mut slashes = 0;
        let mut segments = path.strip_prefix('/')?.split('/').peekable();
        while let Some(segment) = segments.next() {
            if segment.is_empty() && segments.peek().is_some() {
                return None;
            }
            slashes += encoded_slashes(segment)?;
        }
        Some(Self { path, query, slashes })
    }

    /// The path below a root, if it is there. The root is empty, or begins with `/` and does not end with it.
    pub(crate) fn below(self, root: &str) -> Option<Self> {
        let path = self.path.strip_prefix(root).filter(|it| it.starts_with('/'))?;
        Some(Self { path, ..self })
    }

    /// The last segment.
    pub(crate) fn last(&self) -> &'a str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The number of encoded slashes in a segment; `None` if the segment is, or could be read as, another one.
fn encoded_slashes(segment: &str) -> Option<usize> {
    if !segment.contains('%') {
        return (segment != "." && segment != "..").then_some(0);
    }
    let mut slashes = 0;
    let mut decoded = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        };
        match byte {
            b'/' => slashes += 1,
            b'\\' | 0..=0x1f | 0x7f => return None,
            _ => {}
        }
        decoded.push(byte);
    }
    let is_other = |it: &[u8]| matches!(it, b"" | b"." | b"..");
    let is_unclear = decoded.split(|it| *it == b'/').any(is_other);
    (!is_unclear).then_some(slashes)
}

/// A pattern for paths: begins with `/` or `**/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    glob: Glob,
    slashes: usize,
    text: Box<str>,
}

impl PathPattern {
    /// The pattern with this text; `None` if it begins with neither `/` nor `**/`, or has other bytes than a path.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('/').or_else(|| text.starts_with("**/").then_some(text))?;
        let is_visible = rest.bytes().all(|it| it.is_ascii_graphic() && !b"?\\".contains(&it));
        // A `*` stands for no encoded slash, so that it cannot leave its segment.
        let slashes = text.to_ascii_lowercase().matches("%2f").count();
        (is_visible && text.len() <= 256).then(|| Self {
            glob: Glob::new(rest.split('/')),
            slashes,
            text: text.into(),
        })
    }

    /// Whether a path matches; its query does not count.
    pub(crate) fn matches(&self, path: Clean<'_>) -> bool {
        self.slashes == path.slashes && self.glob.matches(path.path[1..].split('/'))
    }

    /// What the leading `**` of a matching path stands for: empty, or from `/` on. The pattern's next part is found as
    /// far to the left as possible.
    pub(crate) fn root<'a>(&self, path: Clean<'a>) -> Option<&'a str> {
        let anchor = self.glob.anchor()?;
        let mut length = 0;
        for segment in path.path[1..].split('/') {
            if segment == anchor {
                return Some(&path.path[..length]);
            }
            length += 1 + segment.len();
        }
        None
    }

    /// The pattern as its table writes it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it can show the root of an archive.
    pub(crate) fn has_root(&self) -> bool {
        self.glob.anchor().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclear_paths_are_refused() {
        let refused = [
            "",
            "a",
            "*",
            "/a//b",
            "//a",
            "/a/../b",
            "/..",
            "/.",
            "/a/.",
            "/%2e%2E/b",
            "/a/.%2e",
            "/a%5cb",
            "/a\\b",
            "/a%00",
            "/a%1f",
            "/a%7f",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%2f..%2fb",
            "/a%2f",
            "/%2fa",
            "/a%2f%2fb",
            "/a%2f.%2fb",
            "/%2e",
            "/a b",
            "/a#b",
            "/ä",
        ];
        for path in refused {
            assert_eq!(Clean::new(path), None, "{path}");
        }
        let long = format!("/{}", "a".repeat(4095));
        assert!(Clean::new(&long).is_some());
        assert_eq!(Clean::new(&format!("{long}a")), None, "a byte too long");
    }

    #[test]
    fn clear_paths_keep_their_parts() {
        let path = Clean::new("/a/b%20c/?x=/../y").unwrap();
        assert_eq!((path.path, path.query, path.last()), ("/a/b%20c/", Some("x=/../y"), ""));
        assert!(Clean::new("/").is_some() && Clean::new("/...").is_some());
        // One dot, encoded, beside something else; and two slashes.
        assert!(Clean::new("/a%2e").is_some() && Clean::new("/a%2fb%2fc").is_some());
    }

    #[test]
    fn an_encoded_slash_matches_only_itself() {
        let scoped = Clean::new("/@types%2fnode").unwrap();
        assert!(PathPattern::new("/@*%2f*").unwrap().matches(scoped));
        assert!(!PathPattern::new("/*").unwrap().matches(scoped));
        assert!(!PathPattern::new("/@*/*").unwrap().matches(scoped));
        assert!(!PathPattern::new("/@*%2f*").unwrap().matches(Clean::new("/@a%2fb%2fc").unwrap()));
    }

    #[test]
    fn a_pattern_begins_at_the_root_or_anywhere_and_has_256_bytes_at_most() {
        for text in ["", "a", "*", "**", "**a/b", "/a?b", "/a\\b", "/a b"] {
            assert!(PathPattern::new(text).is_none(), "{text}");
        }
        let long = format!("**/{}", "a".repeat(253));
        assert_eq!(PathPattern::new(&long).unwrap().text(), long);
        assert!(PathPattern::new(&format!("{long}a")).is_none());
    }

    #[test]
    fn a_root_is_what_stands_before_the_pattern() {
        let pattern = PathPattern::new("**/dists/**/InRelease").unwrap();
        let root = |path| pattern.root(Clean::new(path).unwrap());
        assert_eq!(root("/dists/stable/InRelease"), Some(""));
        assert_eq!(root("/a/b/dists/dists/InRelease"), Some("/a/b"));
        assert_eq!(root("/a/InRelease"), None);
    }

    #[test]
    fn below_a_root_means_below_a_whole_segment() {
        let path = Clean::new("/debian/pool/a").unwrap();
        assert_eq!(path.below("/debian").unwrap().path, "/pool/a");
        assert_eq!(path.below("").unwrap().path, "/debian/pool/a");
        assert_eq!(path.below("/deb"), None);
        assert_eq!(path.below("/debian/pool/a"), None);
    }
}
