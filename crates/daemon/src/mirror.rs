//! The mirror: package archives by URLs of this router. A client's request is translated to one for the archive's own
//! URL, which the engine answers like any other; links in indexes are rewritten on their way to the client. What is
//! stored is what the archive sent.

mod rewriting;

pub use rewriting::{Rewriting, Unreadable};

use classes::{Back, Mapped, Own, Reach, Rewriter};
use http::header::{self, HeaderMap, HeaderValue};
use http::uri::Authority;
use http::{StatusCode, Uri, request};
use wire::Digest;

/// What a client's request to the mirror stands for.
pub enum Translation {
    /// A request to an archive.
    Upstream(Upstream),
    /// The mirror's own answer: its status, its kind of content, and the content.
    Answer(StatusCode, &'static str, String),
}

/// What is to be known of a request to an archive, beside its head.
#[derive(Default)]
pub struct Upstream {
    /// The digest that the content must have.
    pub expected: Option<Digest>,
    /// Rewrites the links of its content.
    rewriter: Option<Box<Rewriter>>,
    /// Leads references in the response's head back to the mirror.
    back: Option<Back>,
}

/// Translates a request's head in place.
pub fn translate(reach: &Reach, head: &mut request::Parts) -> Translation {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let upstream = match classes::map(reach, head.method.as_str(), path) {
        Ok(Mapped::Upstream(upstream)) => upstream,
        Ok(Mapped::Own(Own { content_type, body })) => {
            return Translation::Answer(StatusCode::OK, content_type, body.to_owned());
        }
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
            return Translation::Answer(status, "text/plain", refusal.text + "\n");
        }
    };
    let Ok(uri) = upstream.url.parse::<Uri>() else {
        let text = format!("no archive has the path {path}\n");
        return Translation::Answer(StatusCode::BAD_REQUEST, "text/plain", text);
    };
    let base = base(&head.headers);
    head.uri = uri;
    let rewriter = upstream.rewrite.map(|rewrite| {
        prepare(&mut head.headers);
        Box::new(Rewriter::new(rewrite, &base, &upstream.url, reach.clone()))
    });
    let (expected, back) = (upstream.digest, Some(upstream.back));
    Translation::Upstream(Upstream { expected, rewriter, back })
}

/// The mirror's own address, as the client writes it. A client that does not say gets links without a host.
fn base(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let host = host.filter(|host| !host.as_str().contains('@'));
    host.map_or_else(String::new, |host| format!("http://{host}"))
}

/// A content that is rewritten is wanted whole, and in a form that can be read.
fn prepare(headers: &mut HeaderMap) {
    for part in [header::RANGE, header::IF_RANGE] {
        headers.remove(part);
    }
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
}

impl Upstream {
    /// Whether links of the response are rewritten, if it is as asked for.
    pub fn rewrites(&self) -> bool {
        self.rewriter.is_some()
    }

    /// Turns references in a response's head to the mirror, as far as they lead to what it mirrors.
    pub fn lead_back(&self, headers: &mut HeaderMap) {
        let Some(back) = &self.back else { return };
        for (name, value) in headers.iter_mut() {
            let Ok(text) = value.to_str() else { continue };
            let led = match *name {
                header::LOCATION | header::CONTENT_LOCATION => back.lead(text),
                header::LINK => Some(back.links(text)),
                _ => None,
            };
            if let Some(Ok(led)) = led.map(HeaderValue::try_from) {
                *value = led;
            }
        }
    }

    /// What rewrites a response with this head, if it is one with links. The head then describes the rewritten content.
    pub fn rewriting(self, status: StatusCode, headers: &mut HeaderMap) -> Option<Box<Rewriting>> {
        let is_whole = status == StatusCode::OK;
        let rewriter = self.rewriter.filter(|_| is_whole || status == StatusCode::NOT_MODIFIED)?;
        // The content has the same meaning, but other bytes (RFC 9110 §8.8.1).
        if let Some(tag) =
            headers.get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"))
            && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
        {
            headers.insert(header::ETAG, weak);
        }
        if !is_whole {
            return None;
        }
        let coding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let is_gzip = match coding {
            None | Some(b"identity") => false,
            Some(b"gzip" | b"x-gzip") => true,
            // The archive sent what was not asked for: nobody can read it here.
            Some(_) => return None,
        };
        for name in [header::CONTENT_LENGTH, header::CONTENT_ENCODING, header::ACCEPT_RANGES] {
            headers.remove(name);
        }
        for name in ["content-md5", "content-digest", "repr-digest", "digest"] {
            headers.remove(name);
        }
        Some(Box::new(Rewriting::new(*rewriter, is_gzip)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use std::sync::Arc;

    fn reach() -> Reach {
        Reach { classes: Arc::new(classes::Classes::builtin()), ..Reach::default() }
    }

    fn head(method: &str, path: &str) -> request::Parts {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "10.0.0.1:3142").header("range", "bytes=0-9");
        request.header("accept-encoding", "br").body(()).expect("a request").into_parts().0
    }

    #[test]
    fn a_file_is_asked_for_as_its_client_wants_it() {
        let mut head = head("GET", "/apt/deb.debian.org/debian/pool/x.deb");
        let Translation::Upstream(upstream) = translate(&reach(), &mut head) else {
            panic!("an archive has it")
        };
        assert!(upstream.rewriter.is_none() && upstream.expected.is_none());
        assert_eq!(head.headers["range"], "bytes=0-9");
        assert_eq!(head.uri.host(), Some("deb.debian.org"));
    }

    #[test]
    fn an_index_is_asked_for_whole_and_described_anew() {
        let mut head = head("GET", "/pypi/simple/six/");
        let Translation::Upstream(upstream) = translate(&reach(), &mut head) else {
            panic!("an archive has it")
        };
        assert_eq!(head.uri, "https://pypi.org/simple/six/");
        assert_eq!(
            (head.headers.get("range"), &head.headers["accept-encoding"]),
            (None, &HeaderValue::from_static("gzip"))
        );
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("etag", "\"a\""), ("content-length", "9"), ("content-encoding", "gzip"), ("age", "1")]
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert!(upstream.rewriting(StatusCode::OK, &mut headers).is_some());
        assert_eq!((headers.len(), &headers["etag"]), (2, &HeaderValue::from_static("W/\"a\"")));
    }

    #[test]
    fn references_in_a_head_lead_back_to_the_mirror() {
        let mut head = head("GET", "/v2/quay.io/a/b/tags/list?n=1");
        let Translation::Upstream(upstream) = translate(&reach(), &mut head) else {
            panic!("a registry has it")
        };
        let mut headers = HeaderMap::new();
        headers.append(
            "link",
            HeaderValue::from_static("</v2/a/b/tags/list?last=x&n=1>; rel=\"next\""),
        );
        headers.append("link", HeaderValue::from_static("<https://e.test/>; rel=\"help\""));
        headers.append("location", HeaderValue::from_static("https://quay.io/v2/a/b/blobs/x"));
        upstream.lead_back(&mut headers);
        let links: Vec<_> = headers.get_all("link").iter().collect();
        assert_eq!(
            links,
            [
                "</v2/quay.io/a/b/tags/list?last=x&n=1>; rel=\"next\"",
                "<https://e.test/>; rel=\"help\""
            ]
        );
        assert_eq!(headers["location"], "/v2/quay.io/a/b/blobs/x");
    }

    #[test]
    fn a_confirmation_has_the_tag_of_what_it_confirms() {
        let tag = |path: &str, status| {
            let Translation::Upstream(upstream) = translate(&reach(), &mut head("GET", path))
            else {
                panic!("an archive has it")
            };
            let mut headers = HeaderMap::new();
            headers.insert("etag", HeaderValue::from_static("\"a\""));
            let rewrites = upstream.rewriting(status, &mut headers).is_some();
            (headers["etag"].to_str().unwrap().to_owned(), rewrites)
        };
        let index = "/pypi/simple/six/";
        assert_eq!(tag(index, StatusCode::OK), ("W/\"a\"".into(), true));
        assert_eq!(tag(index, StatusCode::NOT_MODIFIED), ("W/\"a\"".into(), false));
        assert_eq!(tag(index, StatusCode::NOT_FOUND), ("\"a\"".into(), false));
        assert_eq!(
            tag("/apt/deb.debian.org/debian/x", StatusCode::NOT_MODIFIED),
            ("\"a\"".into(), false)
        );
    }

    #[test]
    fn what_is_no_mirrors_business_is_answered_with_a_sentence() {
        for (method, path, status) in [
            ("PUT", "/npm/x", 405),
            ("GET", "/apt/evil.test/x", 403),
            ("GET", "/nothing/x", 404),
            ("GET", "/apt/deb.debian.org/../x", 400),
            ("GET", "/v2/", 200),
        ] {
            let Translation::Answer(given, _, _) = translate(&reach(), &mut head(method, path))
            else {
                panic!("{method} {path}")
            };
            assert_eq!(given, status, "{method} {path}");
        }
    }
}
