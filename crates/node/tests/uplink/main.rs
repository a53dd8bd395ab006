//! The uplink's pair in virtual time: both ends, a slow link between them, and origins behind it.

mod bytes;
mod calls;
mod chaos;
mod corpus;
mod crowds;
mod flows;
mod full;
mod histories;
mod hostile;
mod hostile_near;
mod hostile_tcp;
mod net;
mod published;
mod rogue;
mod savings;
mod strangers;
mod tcp;
mod uses;
