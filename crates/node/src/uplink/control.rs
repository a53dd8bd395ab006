//! Messages as one zstd stream a direction: what was said before costs little the next time.

use super::codec::{Fields, Malformed};
use super::messages::{self, Context, Message, Skipped};
use zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective,
    zstd_sys::ZSTD_EndDirective,
};

/// How far back the stream refers: a power of two of bytes. The reader's memory.
const WINDOW_LOG: u32 = 17;
/// The level of the stream: messages are short, and its state stays.
const LEVEL: i32 = 6;
/// What has been decompressed and is not a whole message yet, at most.
const PARTIAL_MAX: usize = 256 * 1024;
/// What both ends begin with: strings that most heads have.
const BEGINNING: &[u8] = include_bytes!("beginning.txt");

/// Encodes and compresses messages.
pub struct Speaker {
    stream: CCtx<'static>,
    cx: Context,
}

impl Default for Speaker {
    fn default() -> Self {
        let mut stream = CCtx::create();
        let set = [
            CParameter::CompressionLevel(LEVEL),
            CParameter::WindowLog(WINDOW_LOG),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
        ];
        for parameter in set {
            stream.set_parameter(parameter).expect("a parameter of zstd's within its bounds");
        }
        stream.load_dictionary(BEGINNING).expect("a raw dictionary");
        Self { stream, cx: Context::default() }
    }
}

impl Speaker {
    /// Compresses messages, so that the reader can read all of them; `None` if zstd fails.
    pub fn say<'a>(&mut self, messages: impl Iterator<Item = &'a Message>) -> Option<Vec<u8>> {
        let mut plain = Vec::new();
        messages.for_each(|message| messages::encode(&mut self.cx, message, &mut plain));
        self.compress(&plain)
    }

    /// Compresses encoded messages.
    pub fn compress(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(plain.len()) + 64);
        let mut input = InBuffer::around(plain);
        loop {
            if out.capacity() - out.len() < 64 {
                out.reserve(1024);
            }
            let position = out.len();
            let mut buffer = OutBuffer::around_pos(&mut out, position);
            let flush = ZSTD_EndDirective::ZSTD_e_flush;
            let left = self.stream.compress_stream2(&mut buffer, &mut input, flush).ok()?;
            if left == 0 && input.pos() == plain.len() {
                return Some(out);
            }
        }
    }
}

/// Decompresses and decodes messages.
pub struct Reader {
    stream: DCtx<'static>,
    cx: Context,
    partial: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        let mut stream = DCtx::create();
        stream
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
            .expect("a parameter of zstd's within its bounds");
        stream.reset(ResetDirective::SessionOnly).expect("a stream that has not begun");
        stream.load_dictionary(BEGINNING).expect("a raw dictionary");
        Self { stream, cx: Context::default(), partial: Vec::new() }
    }
}

impl Reader {
    /// Reads the messages of one compressed piece, and says what it did not understand.
    ///
    /// # Errors
    /// If it is not what a [`Speaker`] made, or decompresses to more than is held at one time.
    pub fn hear(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Message),
    ) -> Result<Skipped, Malformed> {
        let mut input = InBuffer::around(bytes);
        let mut produced = 0;
        loop {
            let (position, taken) = (self.partial.len(), input.pos());
            self.partial.reserve(16 * 1024);
            let mut buffer = OutBuffer::around_pos(&mut self.partial, position);
            self.stream.decompress_stream(&mut buffer, &mut input).map_err(|_| Malformed)?;
            let grown = self.partial.len() - position;
            produced += grown;
            // A piece is one flush: it ends when all input is taken and no more comes out.
            if grown == 0 && input.pos() == bytes.len() {
                break;
            }
            if produced > PARTIAL_MAX || (grown == 0 && input.pos() == taken) {
                return Err(Malformed);
            }
        }
        let mut fields = Fields(&self.partial);
        let mut skipped = Skipped { of: produced, ..Skipped::default() };
        while !fields.0.is_empty() {
            messages::decode(&mut self.cx, &mut fields, &mut skipped)?
                .into_iter()
                .for_each(&mut each);
        }
        self.partial.clear();
        Ok(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        prop_oneof![
            (any::<u32>(), any::<u64>()).prop_map(|(id, it)| Message::Credit(id.into(), it)),
            any::<u32>().prop_map(|id| Message::Finish(id.into(), Ok(()))),
            any::<u32>().prop_map(|id| Message::Cancel(id.into())),
            vec(any::<u64>(), 0..64).prop_map(Message::Want),
            (any::<u64>(), vec(any::<u8>(), 0..300)).prop_map(|(at, it)| Message::Unit(at, it)),
        ]
    }

    proptest! {
        /// Whatever a later version puts between and behind the messages that are known, these read the same.
        #[test]
        fn what_is_unknown_changes_nothing_that_is_known(
            said in vec((message(), vec(any::<u8>(), 0..200), 19..=255u8), 0..20),
        ) {
            let (mut cx, mut plain, mut expected) = (Context::default(), Vec::new(), Skipped::default());
            for (message, more, unknown) in &said {
                let mut encoded = Vec::new();
                messages::encode(&mut cx, message, &mut encoded);
                let (kind, mut fields) = (encoded[0], &encoded[1..]);
                let length = wire::varint::read(&mut fields).unwrap();
                prop_assert_eq!(length, fields.len() as u64);
                plain.push(kind);
                wire::varint::write(length + more.len() as u64, &mut plain);
                plain.extend_from_slice(fields);
                plain.extend_from_slice(more);
                plain.push(*unknown);
                wire::varint::write(more.len() as u64, &mut plain);
                plain.extend_from_slice(more);
                expected.longer += u64::from(!more.is_empty());
                expected.unknown += 1;
            }
            expected.of = plain.len();
            let compressed = Speaker::default().compress(&plain).unwrap();
            let mut heard = Vec::new();
            let skipped = Reader::default().hear(&compressed, |message| heard.push(message));
            prop_assert_eq!(skipped, Ok(expected));
            prop_assert_eq!(heard, said.into_iter().map(|it| it.0).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_said_again_costs_little() {
        let (mut speaker, mut reader) = (Speaker::default(), Reader::default());
        let mut sizes = Vec::new();
        for number in 0..20 {
            let headers = [("etag", "\"0123456789abcdef\""), ("x-served-by", "cache-fra-1")];
            let headers = headers.map(|(name, value)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            });
            let head = Message::Head(number, http::StatusCode::OK, headers.into_iter().collect());
            let said = speaker.say([head].iter()).unwrap();
            sizes.push(said.len());
            let mut heard = Vec::new();
            reader.hear(&said, |message| heard.push(message)).unwrap();
            assert!(
                matches!(&heard[..], [Message::Head(id, _, it)] if *id == number && it.len() == 2)
            );
        }
        assert!(sizes[19] < sizes[0] / 2, "{sizes:?}");
    }

    #[test]
    fn a_bomb_is_refused() {
        let plain = vec![0; 64 * 1024 * 1024];
        let mut bomb = Vec::with_capacity(1 << 20);
        zstd_safe::compress(&mut bomb, &plain, 19).unwrap();
        assert!(Reader::default().hear(&bomb, |_| {}).is_err());
        assert!(Reader::default().hear(b"no zstd stream", |_| {}).is_err());
    }
}
