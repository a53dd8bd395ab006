//! Promises of each form, compressed or not, and what is given up.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use wire::Digest;

use super::*;

const ONE: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const TWO: &str = "0202020202020202020202020202020202020202020202020202020202020202";

const PACKAGES: &str = concat!(
    "Package: hello\nFilename: pool/main/h/hello/hello_2.10-3_amd64.deb\nSize: 53132\nMD5sum: 00\n",
    "SHA256: 0101010101010101010101010101010101010101010101010101010101010101\nDescription: x\n y\n\n",
    "Package: z\nSHA256: 0202020202020202020202020202020202020202020202020202020202020202\nFilename: ./pool/z.deb\n\n",
    "Package: none\nFilename: pool/none.deb\n\n",
    "SHA256: 0202020202020202020202020202020202020202020202020202020202020202\n\nFilename: pool/other.deb\n",
);

/// [`PACKAGES`], compressed by `xz -6`.
const XZ: &[u8] = include_bytes!("packages.xz");

/// Ten thousand lines `Tag: none`, and [`PACKAGES`], compressed by `xz -6`: more than the decoder gives at once.
const LONG_XZ: &[u8] = include_bytes!("long.xz");

fn url(path: &str) -> Url<'_> {
    Url { tls: false, host: "deb.test", port: 80, path }
}

fn read(format: IndexFormat, path: &str, pieces: &[&[u8]]) -> Promises {
    let mut promises = Promises::default();
    let mut reader = IndexReader::new(format, url(path)).unwrap();
    pieces.iter().for_each(|it| reader.feed(it, &mut promises));
    promises
}

fn promised(promises: &Promises, path: &str) -> Option<String> {
    promises.get(url(path)).map(|it| it.to_string().replace("sha256:", ""))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn check_packages(promises: &Promises) {
    assert_eq!(
        promised(promises, "/debian/pool/main/h/hello/hello_2.10-3_amd64.deb").as_deref(),
        Some(ONE)
    );
    assert_eq!(promised(promises, "/debian/pool/z.deb").as_deref(), Some(TWO));
    assert_eq!((promises.count(), promises.given_up()), (2, 0));
}

#[test]
fn a_release_says_which_verified_indexes_an_archive_has() {
    let release = format!(
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nOrigin: Debian\nMD5Sum:\n 00 1 main/x\nSHA256:\n \
         {ONE}  1234 main/binary-amd64/Packages.xz\n short 5 x\nSHA512:\n {TWO} 5 main/y\n"
    );
    let packages = IndexFormat::AptPackages;
    let read_all = |of_list: &str| {
        let mut promises = Promises::default();
        let list = url("/debian/dists/sid/main/Packages");
        let mut reader = IndexReader::new(packages, list).unwrap();
        reader.feed(PACKAGES.as_bytes(), &mut promises);
        reader.verified(Digest::from_hex(of_list).unwrap(), &mut promises);
        let release_url = Url { tls: true, ..url("/m/dists/sid/InRelease") };
        let mut reader = IndexReader::new(IndexFormat::AptRelease, release_url).unwrap();
        reader.feed(release.as_bytes(), &mut promises);
        promises
    };
    let file = Url { tls: true, ..url("/m/pool/z.deb") };
    assert_eq!(read_all(ONE).get(file), Some(Digest::Sha256([2; 32])));
    let mut others = read_all(TWO);
    assert_eq!(others.get(file), None);
    let list = Url { tls: true, ..url("/m/dists/sid/main/Packages") };
    others.same(packages, list, Digest::from_hex(TWO).unwrap());
    assert_eq!(others.get(file), Some(Digest::Sha256([2; 32])));
}

#[test]
fn a_broken_index_is_verified_for_nobody() {
    let mut promises = Promises::default();
    let list = url("/debian/dists/sid/main/Packages.gz");
    let mut reader = IndexReader::new(IndexFormat::AptPackages, list).unwrap();
    reader.feed(b"no archive at all", &mut promises);
    let digest = Digest::Sha256([7; 32]);
    reader.verified(digest, &mut promises);
    let other = Url { tls: true, ..list };
    promises.same(IndexFormat::AptPackages, other, digest);
    assert_eq!((promises.given_up(), promises.count()), (1, 0));
}

#[test]
fn packages_promise_files_below_the_root_in_any_form() {
    let folder = "/debian/dists/sid/main/binary-amd64";
    for (name, bytes) in [
        ("Packages", PACKAGES.as_bytes().to_vec()),
        ("Packages.gz", gzip(PACKAGES.as_bytes())),
        ("Packages.xz", XZ.to_vec()),
        ("Packages.xz", LONG_XZ.to_vec()),
        ("Packages.bz2", bzip2(PACKAGES.as_bytes())),
        (
            "Packages.bz2",
            bzip2(&["Tag: none\n".repeat(10_000).as_bytes(), PACKAGES.as_bytes()].concat()),
        ),
        ("Packages.bz2", [bzip2(b"Tag: none\n"), bzip2(PACKAGES.as_bytes())].concat()),
    ] {
        // By its digest, the name does not say the form.
        for path in [format!("{folder}/{name}"), format!("{folder}/by-hash/SHA256/{ONE}")] {
            check_packages(&read(IndexFormat::AptPackages, &path, &[&bytes]));
            let pieces: Vec<_> = bytes.chunks(1).collect();
            check_packages(&read(IndexFormat::AptPackages, &path, &pieces));
        }
    }
}

#[test]
fn without_sha_256_the_longer_digest_is_promised() {
    let (long, other) = ("03".repeat(64), "04".repeat(64));
    let list = |fields: &str| {
        let text = format!("Package: a\n{fields}\n");
        let path = "/debian/dists/sid/main/Packages";
        let promises = read(IndexFormat::AptPackages, path, &[text.as_bytes()]);
        assert_eq!(promises.count(), 1);
        promises.get(url("/debian/a.deb"))
    };
    let (short, long_one) = (Some(Digest::Sha256([1; 32])), Some(Digest::Sha512([3; 64])));
    assert_eq!(list(&format!("Filename: a.deb\nSHA512: {long}\n")), long_one);
    assert_eq!(list(&format!("SHA512: {long}\nFilename: a.deb\n")), long_one);
    assert_eq!(list(&format!("Filename: a.deb\nSHA256: {ONE}\nSHA512: {long}\n")), short);
    assert_eq!(list(&format!("Filename: a.deb\nSHA512: {long}\nSHA256: {ONE}\n")), short);
    assert_eq!(list(&format!("Filename: a.deb\nSHA256: {long}\nSHA512: {long}\n")), long_one);
    assert_eq!(
        list(&format!("Filename: a.deb\nSHA512: {ONE}\nSHA512: {other}\n")),
        Some(Digest::Sha512([4; 64]))
    );
}

#[test]
fn a_record_without_an_end_lends_its_digest_to_no_other_file() {
    let text = format!("Filename: a\nSHA256: {ONE}\nFilename: b\n\nFilename: c\nSHA256: {TWO}\n");
    let promises =
        read(IndexFormat::AptPackages, "/debian/dists/sid/main/Packages", &[text.as_bytes()]);
    let of = |name| promised(&promises, &format!("/debian/{name}"));
    assert_eq!((of("a").as_deref(), of("b"), of("c").as_deref()), (Some(ONE), None, Some(TWO)));
}

#[test]
fn a_release_lists_longer_digests_too() {
    let long = "07".repeat(64);
    let counts = |section: &str| {
        let mut promises = Promises::default();
        let list = url("/debian/dists/sid/main/Packages");
        let mut reader = IndexReader::new(IndexFormat::AptPackages, list).unwrap();
        reader.feed(PACKAGES.as_bytes(), &mut promises);
        reader.verified(Digest::from_hex(&long).unwrap(), &mut promises);
        let release = Url { tls: true, ..url("/m/dists/sid/Release") };
        let mut reader = IndexReader::new(IndexFormat::AptRelease, release).unwrap();
        reader.feed(format!("{section}:\n {long} 5 main/Packages\n").as_bytes(), &mut promises);
        promises.get(Url { tls: true, ..url("/m/pool/z.deb") }).is_some()
    };
    assert!(counts("SHA512") && !counts("SHA256") && !counts("SHA1"));
}

#[test]
fn openwrts_packages_promise_files_of_their_folder() {
    let text = format!("Package: a\nFilename: a_1_x86_64.ipk\nSize: 1\nSHA256sum: {ONE}\n\n");
    let path = "/releases/23.05.3/packages/x86_64/base/Packages.gz";
    let promises = read(IndexFormat::OpenwrtPackages, path, &[&gzip(text.as_bytes())]);
    let file = "/releases/23.05.3/packages/x86_64/base/a_1_x86_64.ipk";
    assert_eq!(promised(&promises, file).as_deref(), Some(ONE));
}

#[test]
fn an_index_without_a_root_promises_nothing() {
    for path in ["/debian/Packages.gz", "/dists/../x/dists/Packages", "/dists/sid/Packages?x"] {
        assert!(IndexReader::new(IndexFormat::AptPackages, url(path)).is_none(), "{path}");
    }
}

#[test]
fn long_lines_are_passed_over_in_bounded_memory() {
    let mut fields = Fields::new(
        Records::Packages { sha256: "SHA256", sha512: "SHA512" },
        IndexId::of_url(url("/x")),
        url("/debian/"),
    );
    let mut promises = Promises::default();
    fields.begin(&mut promises);
    fields.feed(b"Filename: ", &mut promises);
    for _ in 0..1000 {
        fields.feed(&[b'x'; 1000], &mut promises);
        assert!(fields.capacity() <= 16 << 10);
    }
    fields.feed(format!("\nFilename: pool/a.deb\nSHA256: {ONE}\n").as_bytes(), &mut promises);
    assert_eq!(promised(&promises, "/debian/pool/a.deb").as_deref(), Some(ONE));
}

#[test]
fn broken_indexes_are_given_up_and_counted() {
    let path = "/debian/dists/sid/main/binary-amd64/Packages";
    let mut broken = gzip(PACKAGES.as_bytes());
    broken[40] ^= 0xff;
    let promises = read(IndexFormat::AptPackages, &format!("{path}.gz"), &[&broken, b"more"]);
    assert_eq!(promises.given_up(), 1);
    let promises = read(IndexFormat::AptPackages, &format!("{path}.xz"), &[b"no archive at all"]);
    assert_eq!(promises.given_up(), 1);
}

#[test]
fn an_index_that_grows_too_much_is_given_up() {
    let path = "/debian/dists/sid/main/binary-amd64/Packages.gz";
    for bomb in [gzip(&vec![b'\n'; 8 << 20]), bzip2(&vec![b'\n'; 8 << 20])] {
        let path = if bomb[0] == b'B' { path.replace("gz", "bz2") } else { path.into() };
        let promises =
            read(IndexFormat::AptPackages, &path, &bomb.chunks(1000).collect::<Vec<_>>());
        assert_eq!((promises.count(), promises.given_up()), (0, 1));
    }
}

#[test]
fn an_index_may_grow_by_one_mib_and_a_hundred_times_of_what_was_read() {
    let path = "/debian/dists/sid/main/binary-amd64/Packages.gz";
    let given_up = |more: usize| {
        let bytes = gzip(&vec![b'x'; (1 << 20) + more]);
        // So that it may grow by some hundred kB more.
        assert!((1000..10_000).contains(&bytes.len()), "{}", bytes.len());
        read(IndexFormat::AptPackages, path, &[&bytes]).given_up()
    };
    assert_eq!((given_up(50_000), given_up(4 << 20)), (0, 1));
}

#[test]
fn an_index_has_room_for_its_last_byte_and_no_more() {
    let list = url("/debian/dists/sid/main/Packages");
    let fits = |room| {
        let mut reader = IndexReader::new(IndexFormat::AptPackages, list).unwrap();
        let sink = reader.form.sink().unwrap();
        assert_eq!(sink.room, 512 * 1024 * 1024);
        sink.room = room;
        sink.write_all(PACKAGES.as_bytes()).is_ok()
    };
    let size = PACKAGES.len() as u64;
    assert!(fits(size) && !fits(size - 1));
}

#[test]
fn a_reader_without_a_decoder_is_small() {
    let is_small = |format, name: &str, bytes: &[u8]| {
        let path = format!("/debian/dists/sid/{name}");
        let mut reader = IndexReader::new(format, url(&path)).unwrap();
        reader.feed(bytes, &mut Promises::default());
        reader.is_small()
    };
    let packages = IndexFormat::AptPackages;
    assert!(is_small(IndexFormat::AptRelease, "InRelease", b""));
    assert!(!is_small(packages, "Packages", b""), "its form is not known");
    assert!(is_small(packages, "Packages", b"Package: a"));
    assert!(!is_small(packages, "Packages", &gzip(b"")));
    assert!(!is_small(packages, "Packages.xz", XZ));
    assert!(is_small(packages, "Packages.xz", b"no archive at all"), "it was given up");
}

#[test]
fn a_line_has_four_kib_at_most() {
    let is_read = |length: usize, cut: usize| {
        let field = format!("{:<length$}\n", format!("SHA256: {ONE}"));
        let (begin, end) = field.as_bytes().split_at(cut);
        let list = "/debian/dists/sid/main/Packages";
        read(IndexFormat::AptPackages, list, &[b"Filename: a\n", begin, end]).count() == 1
    };
    for cut in [0, 1, 100, 4096] {
        assert!(is_read(4096, cut) && !is_read(4097, cut), "{cut}");
    }
}

#[test]
fn paths_that_are_not_clear_are_not_promised() {
    for path in ["../a.deb", "a//b.deb", "a.deb?x", "a\\b.deb", "/a.deb"] {
        let text = format!("Filename: {path}\nSHA256: {ONE}\n\n");
        let promises =
            read(IndexFormat::AptPackages, "/debian/dists/sid/main/Packages", &[text.as_bytes()]);
        assert_eq!(promises.count(), 0, "{path}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..400_usize) {
        let path = "/debian/dists/sid/main/binary-amd64/Packages";
        for (name, mut content) in [("", PACKAGES.as_bytes().to_vec()), (".gz", gzip(PACKAGES.as_bytes())), (".xz", XZ.to_vec()), (".bz2", bzip2(PACKAGES.as_bytes()))] {
            let at = at.min(content.len());
            content.splice(at..(at + bytes.len()).min(content.len()), bytes.iter().copied());
            let promises = read(IndexFormat::AptPackages, &format!("{path}{name}"), &[&content]);
            prop_assert!(promises.count() <= 5);
        }
    }

    #[test]
    fn pieces_change_nothing(cut in 0..PACKAGES.len()) {
        let path = "/debian/dists/sid/main/binary-amd64/Packages";
        let (a, b) = PACKAGES.as_bytes().split_at(cut);
        check_packages(&read(IndexFormat::AptPackages, path, &[a, b]));
    }
}

#[test]
fn digests_are_told_as_such() {
    let promises =
        read(IndexFormat::AptPackages, "/debian/dists/sid/main/Packages", &[PACKAGES.as_bytes()]);
    assert_eq!(promises.get(url("/debian/pool/z.deb")), Some(Digest::Sha256([2; 32])));
}
