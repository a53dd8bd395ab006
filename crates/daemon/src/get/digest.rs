//! Digests as in headers and as people write them: RFC 9530's `sha-256=:base64:`, and hexadecimal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A SHA-256.
pub type Sha256 = [u8; 32];

/// The SHA-256 in a `Repr-Digest` or `Content-Digest` (RFC 9530 §2, §3), if there is one. In a
/// dictionary of byte sequences (RFC 9651 §3.2, §3.3.5) commas occur only between members.
pub fn of_header(value: &str) -> Option<Sha256> {
    let members = value.split(',').map(str::trim);
    let found = members.filter_map(|member| member.strip_prefix("sha-256=:")).next_back()?;
    let (base64, _) = found.split_once(':')?;
    STANDARD.decode(base64).ok()?.try_into().ok()
}

/// Parses a SHA-256 in hexadecimal, as `sha256sum` prints it.
pub fn of_hex(text: &str) -> Option<Sha256> {
    let text = text.trim().to_ascii_lowercase();
    text.parse().ok().map(|wire::ObjectKey(bytes)| bytes)
}

/// Formats a SHA-256 in hexadecimal.
pub fn to_hex(digest: &Sha256) -> String {
    wire::ObjectKey(*digest).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO_BASE64: &str = "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=";
    const HELLO_HEX: &str = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";

    #[test]
    fn headers_and_hexadecimal_say_the_same() {
        let hello = of_hex(HELLO_HEX).unwrap();
        for header in [
            format!("sha-256=:{HELLO_BASE64}:"),
            format!("sha-512=:AAAA:, sha-256=:{HELLO_BASE64}:;x=1"),
        ] {
            assert_eq!(of_header(&header), Some(hello), "{header}");
        }
        assert_eq!(to_hex(&hello), HELLO_HEX);
        assert_eq!(of_hex(&HELLO_HEX.to_uppercase()), Some(hello));
    }

    #[test]
    fn what_is_no_digest_is_none() {
        for header in ["", "sha-256=", "sha-256=:AAAA:", "sha-512=:AAAA:", "sha-256=:é:"] {
            assert_eq!(of_header(header), None, "{header}");
        }
        assert_eq!(of_hex("b94d"), None);
    }

    /// Made by `sha256sum` of "hello world".
    #[test]
    fn the_hash_itself_is_sha_256() {
        use sha2::Digest as _;
        assert_eq!(Some(sha2::Sha256::digest(b"hello world").into()), of_hex(HELLO_HEX));
    }
}
