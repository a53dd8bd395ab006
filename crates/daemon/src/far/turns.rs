//! Turns of one gateway's flows.

use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Lets those who wait go on one by one: one in each round of the loop, in the order in which they came.
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

impl Turns {
    /// Waits for a turn. It lasts until the caller waits for something else.
    pub async fn next(&self) {
        // It is never closed.
        let _turn = self.0.acquire().await;
        // Others who ask in this round wait for the next one: the end of this call wakes one of them.
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tokio::task::{LocalSet, spawn_local};

    #[test]
    fn who_has_many_flows_has_no_more_turns_than_who_has_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let order = LocalSet::new().block_on(&runtime, async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let turns = [Rc::<Turns>::default(), Rc::default()];
            let flows = [(0, 'a'), (0, 'b'), (0, 'c'), (0, 'd'), (1, 'x')];
            let tasks = flows.map(|(gateway, flow)| {
                let (turns, order) = (Rc::clone(&turns[gateway]), Rc::clone(&order));
                spawn_local(async move {
                    for _ in 0..2 {
                        turns.next().await;
                        order.borrow_mut().push(flow);
                    }
                })
            });
            for task in tasks {
                task.await.unwrap();
            }
            Rc::into_inner(order).unwrap().into_inner()
        });
        let of = |gateway: &[char]| {
            order.iter().copied().filter(|flow| gateway.contains(flow)).collect::<String>()
        };
        assert_eq!(of(&['a', 'b', 'c', 'd']), "abcdabcd", "each in its turn");
        let second = order.iter().rposition(|flow| *flow == 'x').unwrap();
        assert!(
            second < 5,
            "a flow alone waits for no more than one of the others at a time: {order:?}"
        );
    }
}
