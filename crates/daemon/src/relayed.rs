//! Bytes that were relayed without parsing: tunnels, upgrades, and intercepted connections that are not HTTP. They
//! count as they pass.

use host::splice::Passed;
use node::Crossed;
use node::account::ClassBytes;
use std::cell::Cell;
use std::rc::Rc;

/// The name of what is relayed among the content classes.
pub const CLASS: &str = "relayed";

/// What was relayed since the start.
#[derive(Debug, Default)]
pub struct Relayed {
    /// From clients to servers, and back.
    pub passed: Rc<Passed>,
    /// How the latter crossed the uplink, as far as the far end sent it.
    crossed: Cell<Crossed>,
}

impl Relayed {
    /// A client was given bytes by the far end.
    pub fn come_back(&self, bytes: u64, crossed: Crossed) {
        self.passed.come_back(bytes);
        let mut all = self.crossed.get();
        all.add(crossed);
        self.crossed.set(all);
    }

    /// What clients were given, as content of a class: it came from origins, some of it by the far end.
    pub fn content(&self) -> ClassBytes {
        let Crossed { reference, difference } = self.crossed.get();
        let rest = self.passed.back.get() - reference - difference;
        ClassBytes {
            served_far_reference_bytes: reference,
            served_far_difference_bytes: difference,
            served_origin_bytes: rest,
            fetched_far_reference_bytes: reference,
            fetched_far_difference_bytes: difference,
            fetched_origin_bytes: rest,
            ..ClassBytes::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_far_end_only_referred_to_is_saved() {
        let relayed = Relayed::default();
        relayed.passed.go_there(1);
        relayed.passed.come_back(100);
        relayed.come_back(1000, Crossed { reference: 500, difference: 200 });
        let content = relayed.content();
        assert_eq!((relayed.passed.total(), content.given(), content.brought()), (1101, 1100, 600));
        assert_eq!((content.served_origin_bytes, content.served_far_difference_bytes), (400, 200));
    }
}
