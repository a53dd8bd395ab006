//! The order in which machines handle an input, recorded only in tests.

#[cfg(test)]
use std::cell::RefCell;

#[cfg(test)]
thread_local! {
    static WAY: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// A machine begins to act.
#[inline]
pub fn enter(machine: &'static str) {
    #[cfg(test)]
    WAY.with_borrow_mut(|way| way.push(machine));
    #[cfg(not(test))]
    let _ = machine;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{ClientInput, Entrance, OriginInput, StoreInput};
    use crate::output::{ClientOutput, OriginOutput, StoreOutput};
    use crate::{Access, Config, ExchangeId, Input, Node, OPEN_KEY, Output, Request};
    use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
    use std::net::Ipv4Addr;
    use store::{Index, Policy};
    use wire::{Date, Instant};

    fn node() -> Node {
        let config = Config {
            name: "n".into(),
            secret: OPEN_KEY,
            seed: [1; 32],
            memory_bytes: 64 << 20,
            profile: content::Profile::DEFAULT,
            object_bytes_max: 1 << 30,
            undecided_bytes_max: u64::MAX,
            allow: Vec::new(),
            access: Access::default(),
            built: Date::from_unix(1_000),
            mesh: None,
            reach: classes::Reach::default(),
        };
        Node::new(config, Index::new(1 << 30, Policy::S3Fifo))
    }

    fn request() -> Request {
        Request {
            method: Method::GET,
            uri: "http://o.test/a".parse().expect("a URL"),
            version: Version::HTTP_11,
            headers: HeaderMap::new(),
            has_body: false,
            client: Ipv4Addr::LOCALHOST.into(),
            at_home: false,
            behind_uplink: false,
            entrance: Entrance::Explicit,
            expected: None,
            binding: None,
        }
    }

    fn give(node: &mut Node, input: Input) -> Vec<Output> {
        node.handle_input(Instant::ZERO, input);
        std::iter::from_fn(|| node.poll_output()).collect()
    }

    /// Requests an object and lets its origin send a head; returns the request to the origin.
    fn begin(node: &mut Node) -> crate::FetchId {
        let id = ExchangeId(1);
        let mut outputs = give(node, Input::Client(ClientInput::Request(id, Box::new(request()))));
        outputs.extend(give(node, Input::Client(ClientInput::Credit(id, 1 << 20))));
        for output in std::mem::take(&mut outputs) {
            outputs.extend(match output {
                Output::Store(StoreOutput::Lookup(key)) => {
                    give(node, Input::Store(StoreInput::Row(key, None)))
                }
                _ => Vec::new(),
            });
        }
        let asked = outputs.iter().find_map(|output| match output {
            Output::Origin(OriginOutput::Fetch(id, _)) => Some(*id),
            _ => None,
        });
        let asked = asked.expect("the origin is asked");
        let fields = [(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"))];
        let head = OriginInput::Head(asked, StatusCode::OK, HeaderMap::from_iter(fields));
        give(node, Input::Origin(head));
        asked
    }

    #[test]
    fn a_piece_of_a_body_passes_each_machine_once() {
        let mut node = node();
        let fetch = begin(&mut node);
        let way = |node: &mut Node, bytes: &'static [u8]| {
            WAY.take();
            let outputs = give(node, Input::Origin(OriginInput::Body(fetch, bytes.into())));
            let given = outputs.iter().any(
                |output| matches!(output, Output::Client(ClientOutput::Data(_, it)) if it == bytes),
            );
            assert!(given, "the client gets it: {outputs:?}");
            WAY.take()
        };
        // Stored, sent to the client, and then checked whether the origin may send more.
        let taken = ["object: a body", "client: a reader goes on"];
        let next = ["source: whom to ask", "object: what may come"];
        assert_eq!(way(&mut node, b"one"), [taken, next].concat());
        assert_eq!(way(&mut node, &[7; 8 << 10]), [taken, next].concat());
    }
}
