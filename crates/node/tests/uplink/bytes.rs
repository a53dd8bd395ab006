//! Bytes for origins.

/// Bytes that do not compress, different for each seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// The same with each `every`-th block of 64 bytes replaced.
pub fn edited(old: &[u8], every: usize, seed: u64) -> Vec<u8> {
    let fresh = noise(seed, old.len());
    let blocks = old.chunks(64).zip(fresh.chunks(64)).enumerate();
    blocks
        .flat_map(|(at, (old, new))| if at % every == every / 2 { new } else { old })
        .copied()
        .collect()
}

/// Text of words, about as compressible as a page.
pub fn page(seed: u64, words: usize) -> Vec<u8> {
    let mut text = format!("<html><head><title>Page {seed}</title></head><body>\n").into_bytes();
    let numbers = noise(seed, words * 2);
    for pair in numbers.chunks(2) {
        let word = u16::from_le_bytes([pair[0], pair[1]]) % 1500;
        text.extend_from_slice(format!("<p>word{word} ").as_bytes());
    }
    text.extend_from_slice(b"</body></html>\n");
    text
}
