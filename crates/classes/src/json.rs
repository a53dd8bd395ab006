//! Members of JSON objects (RFC 8259), found without building a tree.

use std::ops::Range;

/// One member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// The name between its quotes, as it is written.
    pub(crate) name: &'a [u8],
    /// Where its value is.
    pub(crate) value: Range<usize>,
}

/// The members of the object that is at the beginning of a text, until the first one that is not complete.
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let begin = blanks(text, 0);
        let at = if text.get(begin) == Some(&b'{') { begin + 1 } else { text.len() };
        Self { text, at }
    }

    fn member(&mut self) -> Option<Member<'a>> {
        let mut at = blanks(self.text, self.at);
        if self.text.get(at) == Some(&b',') {
            at = blanks(self.text, at + 1);
        }
        let after = string(self.text, at)?;
        let name = &self.text[at + 1..after - 1];
        let colon = blanks(self.text, after);
        let begin =
            blanks(self.text, Some(colon + 1).filter(|_| self.text.get(colon) == Some(&b':'))?);
        let end = value(self.text, begin)?;
        self.at = end;
        Some(Member { name, value: begin..end })
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let member = self.member();
        if member.is_none() {
            self.at = self.text.len();
        }
        member
    }
}

/// The last member with a name that is a string without escapes.
pub(crate) fn text_of<'a>(text: &'a [u8], name: &str) -> Option<&'a str> {
    let member = Members::of(text).filter(|it| it.name == name.as_bytes()).last()?;
    let inner = inner(text, &member.value)?;
    std::str::from_utf8(&text[inner]).ok().filter(|it| !it.contains('\\'))
}

/// Where the text of a string is, if a value is one.
pub(crate) fn inner(text: &[u8], value: &Range<usize>) -> Option<Range<usize>> {
    (text.get(value.start) == Some(&b'"')).then(|| value.start + 1..value.end - 1)
}

fn blanks(text: &[u8], at: usize) -> usize {
    let is_blank = |it: &&u8| matches!(it, b' ' | b'\t' | b'\r' | b'\n');
    at + text.get(at..).unwrap_or_default().iter().take_while(is_blank).count()
}

/// The end of the string that begins at a place.
fn string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = Some(at + 1).filter(|_| text.get(at) == Some(&b'"'))?;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that begins at a place.
fn value(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin;
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => at = string(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' | b',' if depth == 0 => return (at > begin).then_some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(&str, &str)> {
        let read = |it: Member<'_>| (it.name.to_owned(), it.value);
        let all = Members::of(text.as_bytes()).map(read);
        all.map(|(name, value)| {
            let at = text.find(&*String::from_utf8(name.clone()).unwrap()).unwrap();
            (&text[at..at + name.len()], &text[value])
        })
        .collect()
    }

    #[test]
    fn members_are_found_with_their_values() {
        let text = r#" { "a" : "x\"}" , "b":{"c":[1,{"d":"]"}]},"e": 12 ,"f":[]}"#;
        let expected =
            [("a", r#""x\"}""#), ("b", r#"{"c":[1,{"d":"]"}]}"#), ("e", "12 "), ("f", "[]")];
        assert_eq!(members(text), expected);
    }

    #[test]
    fn blanks_are_where_json_permits_them() {
        let text = "\t{\r\n\"a\"\t:\n1\r,\t\"b\" :\"x\" }";
        assert_eq!(members(text), [("a", "1\r"), ("b", "\"x\"")]);
        assert_eq!(members("{\"a\":\u{b}1,"), [("a", "\u{b}1")]);
    }

    #[test]
    fn an_incomplete_member_ends_them() {
        assert_eq!(members(r#"{"a":1,"b":"x"#), [("a", "1")]);
        for text in ["", "[", "{", "{}", r#"{"a"}"#, r#"{"a":"#, r#"{"a":}"#, r#"{"a\"#] {
            assert_eq!(members(text), [], "{text}");
        }
    }

    #[test]
    fn the_last_string_of_a_name_counts() {
        assert_eq!(text_of(br#"{"a":"x","a":"y"}"#, "a"), Some("y"));
        assert_eq!(text_of(br#"{"a":"x\/y"}"#, "a"), None);
        assert_eq!(text_of(br#"{"a":{"b":1}}"#, "a"), None);
    }
}
