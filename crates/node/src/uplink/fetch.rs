//! Requests and heads of responses as fields of messages.

use super::codec::{Fields, Malformed, Writer};
use crate::access::Forbidden;
use crate::input::FetchError;
use crate::output::Dial;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::net::{IpAddr, SocketAddr};

/// Header fields of one head at most.
const FIELDS_MAX: usize = 256;
/// All bytes of a head at most; [`crate::Screen`] refuses longer ones.
const HEAD_MAX: usize = 64 * 1024;
/// A host name at most, in bytes (RFC 1035 §2.3.4).
const HOST_MAX: usize = 255;

/// A request that the far end is to send to an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The server to dial.
    pub dial: Dial,
    /// Whether to speak TLS to it.
    pub tls: bool,
    /// Tells apart those for whom flows are; what it is the hash of is not said.
    pub client: u64,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The header fields, `Host` among them.
    pub headers: HeaderMap,
    /// Whether the near end sends content.
    pub has_content: bool,
}

const NAME: u8 = 0;
const V4: u8 = 1;
const V6: u8 = 2;
const TLS: u8 = 4;
const CONTENT: u8 = 8;

pub fn encode_asked(asked: &Asked, w: &mut Writer<'_>) {
    let kind = match &asked.dial {
        Dial::Name(..) => NAME,
        Dial::Address(SocketAddr::V4(_)) => V4,
        Dial::Address(SocketAddr::V6(_)) => V6,
    };
    let flag = |bit, is_set| if is_set { bit } else { 0 };
    w.bytes(&[kind | flag(TLS, asked.tls) | flag(CONTENT, asked.has_content)]);
    match &asked.dial {
        Dial::Name(host, port) => {
            w.string(host.as_bytes());
            w.number((*port).into());
        }
        Dial::Address(address) => {
            match address.ip() {
                IpAddr::V4(ip) => w.bytes(&ip.octets()),
                IpAddr::V6(ip) => w.bytes(&ip.octets()),
            }
            w.number(address.port().into());
        }
    }
    w.number(asked.client);
    w.string(asked.method.as_str().as_bytes());
    w.string(asked.path.as_bytes());
    encode_headers(&asked.headers, w);
}

pub fn decode_asked(fields: &mut Fields<'_>) -> Result<Asked, Malformed> {
    let [flags] = fields.array()?;
    let port = |fields: &mut Fields<'_>| fields.up_to(0xffff).map(|port| port as u16);
    let dial = match flags & 3 {
        NAME => {
            let host = fields.text(HOST_MAX)?.to_owned();
            Dial::Name(host, port(fields)?)
        }
        V4 => {
            let ip: [u8; 4] = fields.array()?;
            Dial::Address((ip, port(fields)?).into())
        }
        V6 => {
            let ip: [u8; 16] = fields.array()?;
            Dial::Address((ip, port(fields)?).into())
        }
        _ => return Err(Malformed),
    };
    if flags & !(3 | TLS | CONTENT) != 0 {
        return Err(Malformed);
    }
    Ok(Asked {
        dial,
        tls: flags & TLS != 0,
        client: fields.number()?,
        method: Method::from_bytes(fields.string(HOST_MAX)?).map_err(|_| Malformed)?,
        path: fields.text(HEAD_MAX)?.to_owned(),
        headers: decode_headers(fields)?,
        has_content: flags & CONTENT != 0,
    })
}

pub fn encode_headers(headers: &HeaderMap, w: &mut Writer<'_>) {
    w.number(headers.len() as u64);
    for (name, value) in headers {
        w.string(name.as_str().as_bytes());
        w.string(value.as_bytes());
    }
}

pub fn decode_headers(fields: &mut Fields<'_>) -> Result<HeaderMap, Malformed> {
    let count = fields.up_to(FIELDS_MAX)?;
    let mut headers = HeaderMap::with_capacity(count);
    let mut room = HEAD_MAX;
    for _ in 0..count {
        let name = fields.string(room)?;
        room -= name.len();
        let value = fields.string(room)?;
        room -= value.len();
        let name = HeaderName::from_bytes(name).map_err(|_| Malformed)?;
        let value = HeaderValue::from_bytes(value).map_err(|_| Malformed)?;
        headers.try_append(name, value).map_err(|_| Malformed)?;
    }
    Ok(headers)
}

/// How the end of a flow is said. What is forbidden is not told in detail.
const CODES: [FetchError; 12] = [
    FetchError::Unresolved,
    FetchError::Forbidden(Forbidden::Inward),
    FetchError::Unreachable,
    FetchError::TimedOut,
    FetchError::Malformed,
    FetchError::Truncated,
    FetchError::Unsent,
    FetchError::Untrusted,
    FetchError::NotTls,
    FetchError::NoTls,
    FetchError::Astray,
    FetchError::NoRoom,
];

pub fn code_of(result: Result<(), FetchError>) -> u64 {
    let Err(error) = result else { return 0 };
    // The codes are as old as the format, and do not tell these apart.
    let error = if error == FetchError::Refused { FetchError::Unreachable } else { error };
    let is_same =
        |code: &FetchError| std::mem::discriminant(code) == std::mem::discriminant(&error);
    // An error that the far end cannot have: it counts as a response that broke off.
    1 + CODES.iter().position(is_same).unwrap_or(5) as u64
}

/// The result of a code. One that a later far end may send is a failure like any.
pub fn result_of(code: u64) -> Result<(), FetchError> {
    let Some(code) = code.checked_sub(1) else { return Ok(()) };
    let error = usize::try_from(code).ok().and_then(|code| CODES.get(code));
    Err(error.copied().unwrap_or(FetchError::Truncated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_reads_back() {
        for result in CODES.into_iter().map(Err).chain([Ok(())]) {
            assert_eq!(result_of(code_of(result)), result);
        }
        for unknown in [99, u64::MAX, code_of(Err(FetchError::NoRoute))] {
            assert_eq!(result_of(unknown), Err(FetchError::Truncated));
        }
    }
}
