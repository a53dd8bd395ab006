use super::*;
use proptest::prelude::*;

/// Reads `bytes` in pieces of `piece` bytes. Gives methods or statuses, contents, and whether all of it was
/// well-formed.
fn read(bytes: &[u8], piece: usize, close: bool) -> (Vec<String>, bool) {
    let mut reader = Reader::new::<ResponseHead>();
    let mut told = Vec::new();
    let mut content = Vec::new();
    let mut take = |part: Part<ResponseHead>| match part {
        Part::Head(head) => told.push(head.status.as_str().to_owned()),
        Part::Body(bytes) => content.extend_from_slice(&bytes),
        Part::End => told.push(String::from_utf8(std::mem::take(&mut content)).unwrap()),
    };
    for piece in bytes.chunks(piece) {
        reader.push(Bytes::copy_from_slice(piece));
        loop {
            match reader.poll() {
                Ok(Some(part)) => take(part),
                Ok(None) => break,
                Err(Malformed) => return (told, false),
            }
        }
    }
    let end = if close { reader.close() } else { Ok(None) };
    let is_sound = end.map(|part| part.into_iter().for_each(take)).is_ok();
    (told, is_sound)
}

#[test]
fn content_is_taken_out_of_its_framing_in_any_pieces() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
        HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n\
        HTTP/1.1 404 Not Found\r\n\r\nuntil the end";
    let expected = ["200", "hello", "304", "", "200", "abc0123456789", "404", "until the end"];
    for piece in [1, 2, 7, 64, text.len()] {
        let (told, is_sound) = read(text, piece, true);
        assert!(is_sound);
        assert_eq!(told, expected, "in pieces of {piece}");
    }
}

#[test]
fn an_early_end_is_told_from_a_good_one() {
    for (text, is_good) in [
        ("", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false),
        ("HTTP/1.1 200 O", false),
    ] {
        assert_eq!(read(text.as_bytes(), 1460, true).1, is_good, "{text}");
    }
}

#[test]
fn nonsense_is_refused() {
    for text in [
        "HELO there\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
    ] {
        assert!(!read(text.as_bytes(), 1460, false).1, "{text}");
    }
    let endless =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", "1".repeat(2000));
    assert!(!read(endless.as_bytes(), 100, false).1);
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX + 1));
    assert!(!read(many.as_bytes(), 1460, false).1);
}

#[test]
fn what_is_written_reads_back() {
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("origin"));
    let mut reader = Reader::new::<RequestHead>();
    reader.push(request(&Method::GET, "/file-1.bin", &headers));
    let Ok(Some(Part::Head(head))) = reader.poll::<RequestHead>() else { panic!() };
    assert_eq!((head.method, head.uri.path()), (Method::GET, "/file-1.bin"));
    assert_eq!(head.headers, headers);
    assert!(matches!(reader.poll::<RequestHead>(), Ok(Some(Part::End))));
    assert!(reader.is_idle());
}

#[test]
fn a_connection_is_kept_as_its_version_says() {
    let keeps = |version, connection: &'static str| {
        let connection = (header::CONNECTION, HeaderValue::from_static(connection));
        keeps_alive(version, &HeaderMap::from_iter([connection]))
    };
    assert!(keeps(Version::HTTP_11, "") && keeps(Version::HTTP_10, "keep-alive"));
    assert!(!keeps(Version::HTTP_11, "upgrade, Close") && !keeps(Version::HTTP_10, ""));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        text in proptest::collection::vec(any::<u8>(), 0..300),
        prefix in 0..3_usize,
        piece in 1..50_usize,
    ) {
        let prefix = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"][prefix];
        let bytes = [prefix.as_bytes(), &text].concat();
        let mut reader = Reader::new::<ResponseHead>();
        for piece in bytes.chunks(piece) {
            reader.push(Bytes::copy_from_slice(piece));
            while let Ok(Some(_)) = reader.poll::<ResponseHead>() {}
        }
        let _ = reader.close::<ResponseHead>();
    }
}
