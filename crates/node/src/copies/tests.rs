use super::*;
use wire::peer::Cost;

const NOW: Instant = Instant::ZERO;
const UP: NodeId = NodeId([99; 16]);

fn id(router: u8) -> NodeId {
    NodeId([router; 16])
}

fn at(router: u8) -> IpAddr {
    [10, 0, 0, router].into()
}

fn name(number: usize) -> Hint {
    Hint((number as u64).to_be_bytes())
}

/// A router that is so far from the gateway, and from these.
fn reach(router: u8, gateway: u32, paths: &[(u8, u32)]) -> Reach {
    let paths = paths.iter().map(|(router, cost)| Cost { router: at(*router), cost: *cost });
    Reach { id: id(router), address: at(router), gateway, paths: paths.collect() }
}

fn told(router: u8, stored: &[usize], evicted: &[usize]) -> peer::Copies {
    let names = |numbers: &[usize]| numbers.iter().map(|number| name(*number)).collect();
    peer::Copies { router: at(router), stored: names(stored), evicted: names(evicted) }
}

/// A gateway. Behind peer 1 are 1 and 2, behind peer 3 are 3 and 4. Routers 2 and 4 hear each other.
fn gateway() -> Copies {
    let mut copies = Copies::default();
    copies.handle_reach(NOW, id(1), reach(1, 1, &[(2, 1)]));
    copies.handle_reach(NOW, id(1), reach(2, 2, &[(1, 1), (4, 1), (3, 2)]));
    copies.handle_reach(NOW, id(3), reach(3, 1, &[(4, 1)]));
    copies.handle_reach(NOW, id(3), reach(4, 2, &[(2, 1), (3, 1), (1, 2)]));
    copies
}

fn nearer(copies: &Copies, visited: &[u8], number: usize, next: Option<u8>) -> Vec<(u8, u32)> {
    let visited: Vec<_> = visited.iter().map(|router| id(*router)).collect();
    let routers = copies.nearer(&visited, &name(number), next.map(at));
    let number = |router: &Router| (router.id.0[0], router.cost.expect("it is known"));
    routers.iter().map(number).collect()
}

#[test]
fn who_is_no_farther_than_the_gateway_is_named_the_nearest_first() {
    let mut copies = gateway();
    copies.handle_copies(NOW, id(3), told(4, &[7], &[]));
    copies.handle_copies(NOW, id(3), told(3, &[7], &[]));
    assert_eq!(nearer(&copies, &[2, 1], 7, None), [(4, 1), (3, 2)]);
    // 1 is a neighbour of the gateway, and far from both.
    assert_eq!(nearer(&copies, &[1], 7, None), []);
    // Those that the request has visited do not have it.
    assert_eq!(nearer(&copies, &[2, 4], 7, None), [(3, 2)]);
    assert_eq!(nearer(&copies, &[4], 7, None), [(3, 1)]);
    assert_eq!(nearer(&copies, &[9], 7, None), [], "an asker that nobody told of");
    copies.handle_copies(NOW, id(3), told(4, &[], &[7]));
    assert_eq!(nearer(&copies, &[2, 1], 7, None), [(3, 2)]);
}

#[test]
fn before_the_gateway_only_who_is_no_farther_than_the_next_hop_is_named() {
    let mut copies = gateway();
    copies.handle_copies(NOW, id(3), told(3, &[7], &[]));
    copies.handle_copies(NOW, id(3), told(4, &[7], &[]));
    assert_eq!(nearer(&copies, &[2], 7, Some(1)), [(4, 1)]);
}

#[test]
fn who_was_given_an_object_has_it_and_the_next_hop_is_told_if_it_did_not_see() {
    for is_known in [true, false] {
        let mut copies = gateway();
        copies.tell(Some(UP), std::iter::empty());
        copies.given(NOW, &[id(2), id(1), id(50)], name(7), is_known);
        assert_eq!(copies.holders(&name(7)), [at(1), at(2)]);
        let messages = copies.tell(Some(UP), std::iter::empty());
        let expected = [1, 2].map(|router| (UP, Message::Copies(told(router, &[7], &[]))));
        assert_eq!(messages, if is_known { &[][..] } else { &expected });
    }
}

#[test]
fn changes_are_passed_on_once_and_a_new_next_hop_is_told_everything() {
    let mut copies = gateway();
    let own = reach(50, 1, &[]);
    copies.set_own(NOW, Some(own.clone()));
    copies.handle_copies(NOW, id(1), told(2, &[7, 8], &[]));
    copies.kept(NOW, name(9));
    let all = copies.tell(Some(UP), [name(9)].into_iter());
    assert_eq!(all.len(), 5 + 2, "five routers, and what two have");
    assert!(all.contains(&(UP, Message::Reach(Box::new(own)))));
    assert!(all.contains(&(UP, Message::Copies(told(2, &[7, 8], &[])))));
    assert!(all.contains(&(UP, Message::Copies(told(50, &[9], &[])))));
    assert_eq!((copies.tell(Some(UP), std::iter::empty()), copies.tell_at), (vec![], None));
    copies.handle_copies(NOW, id(1), told(2, &[], &[8]));
    copies.lost(name(9));
    assert_eq!(copies.tell_at, Some(NOW + TOLD_WITHIN));
    let changes = copies.tell(Some(UP), std::iter::empty());
    let expected = [(2, 8), (50, 9)]
        .map(|(router, number)| (UP, Message::Copies(told(router, &[], &[number]))));
    assert_eq!(changes, expected);
    // The next hop has lost its connection, and forgotten all.
    copies.gone(UP);
    assert_eq!(copies.tell(Some(UP), std::iter::empty()).len(), 5 + 1);
    // Another one is told all but what it told itself.
    let others = copies.tell(Some(id(1)), std::iter::empty());
    let of = |message: &Message| match message {
        Message::Reach(reach) => reach.address,
        Message::Copies(copies) => copies.router,
        other => panic!("{other:?}"),
    };
    let of: Vec<_> = others.iter().map(|(_, message)| of(message)).collect();
    assert_eq!(of, [at(3), at(4), at(50)]);
}

#[test]
fn a_peer_tells_only_of_routers_behind_it() {
    let mut copies = gateway();
    // 4 is behind peer 3.
    copies.handle_copies(NOW, id(1), told(4, &[7], &[]));
    copies.handle_copies(NOW, id(1), told(77, &[7], &[]));
    assert_eq!((copies.holders(&name(7)), copies.len()), (&[][..], 0));
    // It has moved behind peer 1.
    copies.handle_copies(NOW, id(3), told(4, &[8], &[]));
    copies.handle_reach(NOW, id(1), reach(4, 3, &[]));
    copies.handle_copies(NOW, id(1), told(4, &[7], &[]));
    assert_eq!(copies.holders(&name(7)), [at(4)]);
    copies.gone(id(3));
    assert_eq!(copies.holders(&name(8)), [at(4)]);
    copies.gone(id(1));
    assert_eq!(copies.len(), 0);
}

#[test]
fn nobody_tells_of_this_router() {
    let mut copies = gateway();
    copies.set_own(NOW, Some(reach(50, 1, &[])));
    copies.handle_reach(NOW, id(1), reach(50, 0, &[(4, 0)]));
    copies.handle_copies(NOW, id(1), told(50, &[7], &[]));
    assert!(copies.holders(&name(7)).is_empty());
}

#[test]
fn a_router_has_one_address() {
    let mut copies = gateway();
    copies.handle_reach(NOW, id(1), Reach { address: at(70), ..reach(4, 1, &[]) });
    assert!(!copies.routers.contains_key(&at(70)));
}

#[test]
fn a_flood_is_bounded() {
    let mut copies = gateway();
    for number in 0..3 * COPIES_MAX {
        copies.handle_copies(NOW, id(3), told(4, &[number], &[]));
    }
    assert_eq!((copies.len(), copies.by_name.len()), (COPIES_MAX, COPIES_MAX));
    assert_eq!(copies.holders(&name(3 * COPIES_MAX - 1)), [at(4)]);
    for number in 0..3 * ROUTERS_MAX as u32 {
        let mut reach = reach(7, 1, &[]);
        reach.address = IpAddr::from(number.to_be_bytes());
        reach.id.0[..4].copy_from_slice(&number.to_be_bytes());
        copies.handle_reach(NOW, id(3), reach);
    }
    // The other peer still tells of its own.
    copies.handle_reach(NOW, id(1), reach(8, 1, &[]));
    assert_eq!(copies.routers.len(), 2 + ROUTERS_OF_PEER_MAX + 1);
    copies.gone(id(3));
    copies.gone(id(1));
    assert_eq!((copies.len(), copies.by_name.len(), copies.routers.len()), (0, 0, 0));
}

#[test]
fn a_peer_tells_of_256_routers_at_most_and_all_peers_of_512() {
    let router = |number: u32| {
        let ([_, a, b, c], mut id) = (number.to_be_bytes(), NodeId([0; 16]));
        id.0[..4].copy_from_slice(&number.to_be_bytes());
        Reach { id, address: [10, a, b, c].into(), gateway: 1, paths: Vec::new() }
    };
    let mut copies = Copies::default();
    for (by, numbers) in [(1, 0..257), (2, 300..600), (3, 600..601)] {
        numbers.for_each(|number| copies.handle_reach(NOW, id(by), router(number)));
    }
    let has = |copies: &Copies, number| copies.routers.contains_key(&router(number).address);
    assert!(has(&copies, 255) && !has(&copies, 256), "one peer has 256");
    assert!(has(&copies, 555) && !has(&copies, 556));
    assert!(copies.routers.len() == 512 && !has(&copies, 600), "all have 512");
    // One that is known may be told of again.
    copies.handle_reach(NOW, id(3), Reach { gateway: 7, ..router(0) });
    let known = &copies.routers[&router(0).address];
    assert_eq!((known.by, known.reach.gateway), (id(3), 7));
}
