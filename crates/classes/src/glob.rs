//! Patterns with wildcards, for paths and for hosts.
//!
//! A text is divided at a separator (`/` or `.`). Within a part, `*` stands for any bytes and `#` for all digits at this
//! place, at least one. A part `**` stands for any number of parts, also none. The time to match is at most the product
//! of both lengths: only the last wildcard is ever tried again.

/// One part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Any number of parts.
    Any,
    /// A part without wildcard.
    Exact(Box<str>),
    /// A part with wildcards.
    Wild(Box<str>),
}

/// A pattern for texts that are divided at a separator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Box<[Part]>,
}

impl Glob {
    /// The pattern with these parts.
    pub(crate) fn new<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let part = |it: &str| match it {
            "**" => Part::Any,
            it if it.contains(['*', '#']) => Part::Wild(it.into()),
            it => Part::Exact(it.into()),
        };
        Self { parts: parts.map(part).collect() }
    }

    /// Whether a text with these parts matches.
    pub(crate) fn matches<'a>(&self, parts: impl Iterator<Item = &'a str> + Clone) -> bool {
        let mut text = parts;
        let mut at = 0;
        let mut retry = None;
        loop {
            let mut next = text.clone();
            match (self.parts.get(at), next.next()) {
                (None, None) => return true,
                (Some(Part::Any), _) => {
                    at += 1;
                    retry = Some((at, text.clone()));
                    continue;
                }
                (Some(part), Some(it)) if part.is(it) => {
                    at += 1;
                    text = next;
                    continue;
                }
                _ => {}
            }
            // No match here: the last `**` takes one part more.
            let Some((after, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            (at, text) = (*after, from.clone());
        }
    }

    /// The first part without wildcard after a leading `**`.
    pub(crate) fn anchor(&self) -> Option<&str> {
        match &*self.parts {
            [Part::Any, Part::Exact(anchor), ..] => Some(anchor),
            _ => None,
        }
    }
}

impl Part {
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Any => false,
            Self::Exact(it) => **it == *text,
            Self::Wild(it) => is_like(it.as_bytes(), text.as_bytes()),
        }
    }
}

/// Whether a part matches one with wildcards.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut retry = None;
    loop {
        let digits = text[read..].iter().take_while(|it| it.is_ascii_digit()).count();
        match (pattern.get(at), text.get(read)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                at += 1;
                retry = Some((at, read));
                continue;
            }
            (Some(b'#'), _) if digits > 0 => {
                at += 1;
                read += digits;
                continue;
            }
            (Some(a), Some(b)) if a == b && *a != b'#' => {
                at += 1;
                read += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = &mut retry else { return false };
        if *from == text.len() {
            return false;
        }
        *from += 1;
        (at, read) = (*after, *from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Glob::new(pattern.split('/')).matches(text.split('/'))
    }

    #[test]
    fn wildcards_stay_within_a_part_or_cross_parts() {
        let yes = [
            ("/pool/**", "/pool/a/b.deb"),
            ("/**/pool/**/*.deb", "/pool/a.deb"),
            ("/**/pool/**/*.deb", "/debian/pool/main/h/hello/hello_2.10.deb"),
            ("/**/a/**/a/b", "/a/x/a/x/a/b"),
            ("/*/-/*.tgz", "/left-pad/-/left-pad-1.0.0.tgz"),
            ("/v#.#.#.info", "/v1.20.3.info"),
            ("/*a*b", "/xaxabxb"),
            ("/**", "/"),
        ];
        let no = [
            ("/pool/*", "/pool/a/b.deb"),
            ("/**/pool/**/*.deb", "/spool/a.deb"),
            ("/**/pool/**/*.deb", "/pool/a.deb/"),
            ("/*/-/*.tgz", "/@types/node/-/node-1.0.0.tgz"),
            ("/v#.#.#.info", "/v1.20.x.info"),
            ("/v#.#.#.info", "/v1.20..info"),
            ("/*a*b", "/xaxabxbx"),
            ("/x", "/x/"),
            ("/#", "/#"),
            ("/#", "/"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_wildcards_take_no_exponential_time() {
        let pattern = "/**/*a*a*a*a*a*a*a*a*b".repeat(20);
        let text = format!("/{}", "a".repeat(60)).repeat(60);
        assert!(!matches(&pattern, &text));
    }

    /// The plain definition: every way to match is tried.
    fn slow(pattern: &[&str], text: &[&str]) -> bool {
        fn part(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern.split_first(), text.split_first()) {
                (None, None) => true,
                (Some((b'*', rest)), _) => (0..=text.len()).any(|count| part(rest, &text[count..])),
                (Some((a, rest)), Some((b, more))) => a == b && part(rest, more),
                _ => false,
            }
        }
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => (0..=text.len()).any(|count| slow(rest, &text[count..])),
            (Some((a, rest)), Some((b, more))) => {
                part(a.as_bytes(), b.as_bytes()) && slow(rest, more)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_its_definition(
            pattern in "(/([*]{2}|[ab*]{0,3})){1,5}",
            text in "(/[ab]{0,3}){1,5}",
        ) {
            let split = |text: &'_ str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
            let (a, b) = (split(&pattern), split(&text));
            let a: Vec<_> = a.iter().map(String::as_str).collect();
            let b: Vec<_> = b.iter().map(String::as_str).collect();
            prop_assert_eq!(matches(&pattern, &text), slow(&a, &b));
        }
    }
}
