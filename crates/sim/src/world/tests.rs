//! Worlds with programs that do next to nothing.
