//! From an upstream's URLs back to the mirror's paths: for references in the heads of responses.

/// Leads back from the URLs below an upstream's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The folder's URL, with `/` at its end.
    pub(super) folder: String,
    /// The folder's path here, with `/` at its end.
    pub(super) path: String,
    /// Added to the query: empty, or as `ns=quay.io`.
    pub(super) query: String,
}

impl Back {
    /// The mirror's path for a URI reference of a response from there; `None` if it leads elsewhere, or is relative to the
    /// request's own path.
    pub fn lead(&self, reference: &str) -> Option<String> {
        let scheme = self.folder.find("//")?;
        let host = scheme + 2 + self.folder[scheme + 2..].find('/')?;
        let rest = match reference {
            it if it.starts_with("//") => it.strip_prefix(&self.folder[scheme..])?,
            it if it.starts_with('/') => it.strip_prefix(&self.folder[host..])?,
            it => it.strip_prefix(&*self.folder)?,
        };
        let (rest, fragment) = rest.find('#').map_or((rest, ""), |at| rest.split_at(at));
        let mark = match (self.query.is_empty(), rest.contains('?')) {
            (true, _) => "",
            (false, true) => "&",
            (false, false) => "?",
        };
        Some(format!("{}{rest}{mark}{}{fragment}", self.path, self.query))
    }

    /// The value of a field `Link` (RFC 8288) whose references lead back.
    pub fn links(&self, field: &str) -> String {
        let (mut out, mut rest) = (String::with_capacity(field.len()), field);
        while let Some(at) = rest.find(['<', '"']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let end = if from.starts_with('<') { from.find('>') } else { quoted(from) };
            let Some(end) = end else {
                rest = from;
                break;
            };
            let (inner, after) = (&from[1..end], &from[end..]);
            let led = from.starts_with('<').then(|| self.lead(inner)).flatten();
            out.push_str(&from[..1]);
            out.push_str(led.as_deref().unwrap_or(inner));
            out.push_str(&after[..1]);
            rest = &after[1..];
        }
        out + rest
    }
}

/// Where a quoted string ends: at its second `"`.
fn quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(query: &str) -> Back {
        let (folder, path) = ("https://quay.io/v2/".into(), "/v2/quay.io/".into());
        Back { folder, path, query: query.into() }
    }

    #[test]
    fn references_to_the_folder_lead_back_and_no_others() {
        let lead = |it| back("").lead(it);
        for same in ["/v2/a/b?last=x", "//quay.io/v2/a/b?last=x", "https://quay.io/v2/a/b?last=x"] {
            assert_eq!(lead(same).as_deref(), Some("/v2/quay.io/a/b?last=x"), "{same}");
        }
        for other in
            ["/v1/a", "https://other.io/v2/a", "http://quay.io/v2/a", "tags?last=x", "", "?x"]
        {
            assert_eq!(lead(other), None, "{other}");
        }
        let lead = |it| back("ns=quay.io").lead(it);
        assert_eq!(lead("/v2/a").as_deref(), Some("/v2/quay.io/a?ns=quay.io"));
        assert_eq!(lead("/v2/a?n=1#b").as_deref(), Some("/v2/quay.io/a?n=1&ns=quay.io#b"));
    }

    #[test]
    fn all_links_of_a_field_lead_back_and_the_rest_stays() {
        let links = |it| back("").links(it);
        assert_eq!(
            links(
                "</v2/a?last=1,2>; rel=\"next\", <https://else.io/v2/b>; title=\"</v2/c> \\\" </v2/d>\"; x, </v2/e>"
            ),
            "</v2/quay.io/a?last=1,2>; rel=\"next\", <https://else.io/v2/b>; title=\"</v2/c> \\\" </v2/d>\"; x, </v2/quay.io/e>"
        );
        for odd in ["", "<", "</v2/a", "x\"", "\"<", "<>"] {
            assert_eq!(links(odd), odd);
        }
    }
}
