//! How fast an npm document of 10 MB passes, and an index of PyPI.

use std::hint::black_box;
use std::sync::Arc;

use classes::{Classes, Reach, Rewrite, Rewriter};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// As much as one read of a connection gives.
const PIECE: usize = 16 << 10;

const INTEGRITY: &str = "sha512-AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";

/// A packument with versions of about 2 KB, as popular packages have them.
fn packument(bytes: usize) -> Vec<u8> {
    let mut text = String::from("{\"name\":\"x\",\"versions\":{");
    for number in 0.. {
        let dependencies: Vec<_> =
            (0..40).map(|it| format!("\"dependency-{it}\":\"^{number}.{it}.0\"")).collect();
        text += &format!(
            "\"1.0.{number}\":{{\"name\":\"x\",\"version\":\"1.0.{number}\",\"dependencies\":{{{}}},\"dist\":{{\"integrity\":\
             \"{INTEGRITY}\",\"shasum\":\"0000000000000000000000000000000000000000\",\"tarball\":\
             \"https://registry.npmjs.org/x/-/x-1.0.{number}.tgz\",\"fileCount\":12,\"signatures\":[{{\"keyid\":\"SHA256:x\",\
             \"sig\":\"MEUCIQ\"}}]}},\"maintainers\":[{{\"name\":\"a\",\"email\":\"a@example.org\"}}]}}",
            dependencies.join(",")
        );
        if text.len() >= bytes {
            break;
        }
        text.push(',');
    }
    (text + "}}").into_bytes()
}

/// An index of PEP 691.
fn simple(bytes: usize) -> Vec<u8> {
    let file = format!(
        "{{\"filename\":\"x-1.0-py3-none-any.whl\",\"hashes\":{{\"sha256\":\"{}\"}},\"requires-python\":\">=3.8\",\"size\":1000,\
         \"url\":\"https://files.pythonhosted.org/packages/aa/bb/cc/x-1.0-py3-none-any.whl\",\"yanked\":false}}",
        "01".repeat(32)
    );
    let files = vec![file.as_str(); bytes / file.len()].join(",");
    format!("{{\"files\":[{files}]}}").into_bytes()
}

fn rewriting(criterion: &mut Criterion) {
    let reach = Reach { classes: Arc::new(Classes::builtin()), ..Reach::default() };
    let contents = [
        ("npm", Rewrite::Npm, "https://registry.npmjs.org/x", packument(10_000_000)),
        ("pypi", Rewrite::Pypi, "https://pypi.org/simple/x/", simple(1_000_000)),
    ];
    for (name, rewrite, url, content) in contents {
        let mut group = criterion.benchmark_group("rewrite");
        group.throughput(Throughput::Bytes(content.len() as u64));
        group.sample_size(20);
        group.bench_function(name, |bencher| {
            let mut out = Vec::with_capacity(2 * PIECE);
            bencher.iter(|| {
                let mut rewriter =
                    Rewriter::new(rewrite, "http://192.0.2.1:3142", url, reach.clone());
                for piece in content.chunks(PIECE) {
                    out.clear();
                    rewriter.feed(black_box(piece), &mut out);
                    black_box(&out);
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, rewriting);
criterion_main!(benches);
