//! The configured address of the gateway.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::net::can_be_router;

/// The gateway's address in the configuration; it must be one that a host can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway(IpAddr);

/// The text cannot be the gateway's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the address of a host: expected something like 10.77.0.8 or fd77::8")]
pub struct GatewayError;

impl Gateway {
    /// The address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.0
    }
}

impl FromStr for Gateway {
    type Err = GatewayError;

    fn from_str(text: &str) -> Result<Self, GatewayError> {
        let address: IpAddr = text.parse().map_err(|_| GatewayError)?;
        let address = address.to_canonical();
        can_be_router(address).then_some(Self(address)).ok_or(GatewayError)
    }
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_can_be_the_gateway() {
        for text in ["10.77.0.8", "fd77::8", "::ffff:10.77.0.8"] {
            assert!(text.parse::<Gateway>().is_ok(), "{text}");
        }
        for text in ["", "10.77.0.8/32", "0.0.0.0", "127.0.0.1", "224.0.0.1", "fe80::1", "ff02::1"]
        {
            assert_eq!(text.parse::<Gateway>(), Err(GatewayError), "{text}");
        }
    }
}
