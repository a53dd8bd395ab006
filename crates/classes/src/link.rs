//! The mirror's links to files whose digest is known: `/KIND/-/DIGITS/HOST[:PORT]/PATH`. The digits are hexadecimal, and
//! their number names the algorithm: some clients encode the colon of a digest's usual text.

use wire::Digest;

/// The parts of a link, without `/KIND/-/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    pub(crate) digest: Digest,
    /// `HOST[:PORT]`.
    pub(crate) authority: &'a str,
    /// Path and query, from `/` on.
    pub(crate) path: &'a str,
}

impl<'a> Link<'a> {
    /// The parts of what follows `/KIND/-/`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (digest, rest) = text.split_once('/')?;
        let (authority, path) = rest.split_at(rest.find('/')?);
        Some(Self { digest: Digest::from_hex(digest).ok()?, authority, path })
    }
}

/// What stands before `HOST[:PORT]/PATH` in a link below `base`. Without a digest, it is the mirror's path for any file.
pub(crate) fn prefix(base: &str, kind: &str, digest: Option<Digest>) -> String {
    match digest {
        Some(digest) => {
            let digits: String = digest.as_bytes().iter().map(|it| format!("{it:02x}")).collect();
            format!("{base}/{kind}/-/{digits}/")
        }
        None => format!("{base}/files/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_reads_back() {
        let digest = Digest::Sha256([7; 32]);
        let link = prefix("", "pypi", Some(digest)) + "a.test:8443/b/c.whl?x";
        let parsed = Link::parse(link.strip_prefix("/pypi/-/").unwrap());
        let expected = Link { digest, authority: "a.test:8443", path: "/b/c.whl?x" };
        assert_eq!(parsed, Some(expected));
    }

    #[test]
    fn other_texts_are_no_links() {
        let (digest, digits) = (Digest::Sha256([7; 32]), "07".repeat(32));
        for text in ["", "07/a.test/b", &digest.to_string(), &format!("{digest}/a.test/b"), &digits]
        {
            assert_eq!(Link::parse(text), None, "{text}");
        }
    }
}
