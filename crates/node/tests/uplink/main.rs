//! The uplink's pair in virtual time: both ends, a slow link between them, and origins behind it.

mod bytes;
mod flows;
mod histories;
mod hostile;
mod net;
mod savings;
