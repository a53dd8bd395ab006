//! Answers with an error of this proxy: why, and what the client is told.

use crate::access::Forbidden;
use crate::input::FetchError;
use crate::output::Head;
use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;
use wire::counters::Reason as _;

wire::reasons! {
    /// Why a request is answered with an error of this proxy. From [`DnsError`](Self::DnsError) on, the origin gave no
    /// sound answer, and the names are those of RFC 9209 §2.3.
    pub enum Fault {
        /// This proxy serves local clients only, and those that its operator names in `allow`; a private address
        /// behind the uplink is not local.
        NotLocal = "not_local",
        /// This request was here before.
        Loop = "loop",
        /// CONNECT wants HOST:PORT of a proxy.
        BadConnect = "bad_connect",
        /// The target has no host.
        NoHost = "no_host",
        /// This proxy fetches http:// and https:// URLs only; use CONNECT for the rest.
        BadScheme = "bad_scheme",
        /// This is a proxy: ask it for http://HOST/PATH.
        NotForProxy = "not_for_proxy",
        /// The field Host names no host.
        BadHost = "bad_host",
        /// The address is no host.
        BadAddress = "bad_address",
        /// A name can only be asked for.
        BadNameMethod = "bad_name_method",
        /// No name of an object: expected 64 hexadecimal digits.
        BadName = "bad_name",
        /// Not cached, as was asked for.
        NotCached = "not_cached",
        /// The host has no address.
        DnsError = "dns_error",
        /// This node does not dial that address for others.
        Prohibited = "destination_ip_prohibited",
        /// The origin cannot be reached.
        Unavailable = "destination_unavailable",
        /// The origin did not answer in time.
        Timeout = "connection_timeout",
        /// This router has no list of trusted CAs, so it cannot verify https:// origins; CONNECT works as ever.
        NoTls = "proxy_configuration_error",
        /// The origin's TLS certificate does not prove that it is this host.
        Untrusted = "tls_certificate_error",
        /// The origin speaks no TLS that is accepted here.
        NotTls = "tls_protocol_error",
        /// Neither the mesh's gateway nor the origin can be reached from here.
        Unroutable = "destination_ip_unroutable",
        /// No router in reach has the object of this name.
        NotFound = "destination_not_found",
        /// The archive sends to a host, or wants a token of one, that is in no table and not in `[mirror] allow`, or sends in
        /// a circle.
        Astray = "http_request_denied",
        /// The origin's answer is not sound HTTP.
        ProtocolError = "http_protocol_error",
        /// The request's content is not sound HTTP, or broke off.
        RequestError = "http_request_error",
        /// The origin closed before it answered.
        Incomplete = "http_response_incomplete",
    }
}

impl Fault {
    /// Why an origin gave no answer.
    pub fn of(error: Option<FetchError>) -> Self {
        match error {
            Some(FetchError::Unresolved) => Self::DnsError,
            Some(FetchError::Forbidden(_)) => Self::Prohibited,
            Some(FetchError::Refused | FetchError::Unreachable | FetchError::NoRoom) => {
                Self::Unavailable
            }
            Some(FetchError::TimedOut) => Self::Timeout,
            Some(FetchError::NoRoute) => Self::Unroutable,
            Some(FetchError::NoHolder) => Self::NotFound,
            Some(FetchError::Elsewhere) => Self::Unroutable,
            Some(FetchError::NoTls) => Self::NoTls,
            Some(FetchError::Untrusted) => Self::Untrusted,
            Some(FetchError::NotTls) => Self::NotTls,
            Some(FetchError::Astray) => Self::Astray,
            Some(FetchError::Malformed) => Self::ProtocolError,
            Some(FetchError::Unsent) => Self::RequestError,
            Some(FetchError::Truncated) | None => Self::Incomplete,
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::NotLocal | Self::Prohibited => StatusCode::FORBIDDEN,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::BadNameMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotCached | Self::Timeout | Self::Unroutable | Self::NotFound => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::DnsError
            | Self::Unavailable
            | Self::NoTls
            | Self::Untrusted
            | Self::NotTls
            | Self::Astray
            | Self::ProtocolError
            | Self::Incomplete => StatusCode::BAD_GATEWAY,
            Self::BadConnect
            | Self::NoHost
            | Self::BadScheme
            | Self::NotForProxy
            | Self::BadHost
            | Self::BadAddress
            | Self::BadName
            | Self::RequestError => StatusCode::BAD_REQUEST,
        }
    }

    /// The head and the content of the answer; `error` may tell more of why.
    pub fn answer(self, name: &str, error: Option<FetchError>) -> (Head, Bytes) {
        let (status, why) = (self.status(), self.why(error));
        let text = error_text(name, status, &why);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self >= Self::DnsError {
            let error = self.name();
            let detail = HeaderValue::try_from(format!("{name}; error={error}"));
            headers.insert("proxy-status", detail.expect("tokens are ASCII"));
        }
        (Head { status, headers, length: Some(text.len() as u64) }, text)
    }

    fn why(self, error: Option<FetchError>) -> String {
        match error {
            Some(FetchError::Forbidden(Forbidden::Port(port))) => format!(
                "this proxy does not go to port {port}; its operator can list it in [access] ports"
            ),
            Some(FetchError::Forbidden(Forbidden::Private)) => {
                "this proxy does not go to private addresses; its operator can list them in \
                 [access] private"
                    .to_owned()
            }
            _ => self.clause(),
        }
    }
}

/// The content of an answer with an error of this proxy: who gives it, and why.
pub fn error_text(name: &str, status: StatusCode, why: &str) -> Bytes {
    Bytes::from(format!("{name} {}: {why}\n", status.as_u16()))
}

/// The answer to a client for which an origin was dialled in vain: its head and its content.
pub fn dialled_in_vain(name: &str, error: FetchError) -> (Head, Bytes) {
    Fault::of(Some(error)).answer(name, Some(error))
}
