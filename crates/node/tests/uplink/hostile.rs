//! An end that breaks the rules.
