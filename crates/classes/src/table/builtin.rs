//! The tables that the program carries.

/// Name and text of each. Their order is that of the classes' numbers.
pub(super) const TABLES: [(&str, &str); 10] = [
    ("apt.toml", include_str!("../../tables/apt.toml")),
    ("pypi.toml", include_str!("../../tables/pypi.toml")),
    ("npm.toml", include_str!("../../tables/npm.toml")),
    ("cargo.toml", include_str!("../../tables/cargo.toml")),
    ("go.toml", include_str!("../../tables/go.toml")),
    ("maven.toml", include_str!("../../tables/maven.toml")),
    ("oci.toml", include_str!("../../tables/oci.toml")),
    ("openwrt.toml", include_str!("../../tables/openwrt.toml")),
    ("alpine.toml", include_str!("../../tables/alpine.toml")),
    ("updates.toml", include_str!("../../tables/updates.toml")),
];
