use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn address(host: u32) -> IpAddr {
    IpAddr::from(std::net::Ipv4Addr::from_bits(0xc000_0200 + host))
}

/// A door with this many connections at a stage, of each of these hosts in turn.
fn crowded(stage: Stage, hosts: u32, count: usize) -> (Door, Vec<GuestId>) {
    let mut door = Door::default();
    let mut ids = Vec::new();
    for host in (0..hosts).cycle().take(count) {
        let (id, dropped) = door.enter(address(host));
        assert_eq!(dropped, None);
        if stage != Stage::Unproven {
            assert_eq!(door.advance(id, stage), None);
        }
        ids.push(id);
    }
    (door, ids)
}

const STAGES: [Stage; 3] = [Stage::Unproven, Stage::Proven, Stage::Parting];

/// One more connection comes to this stage.
fn one_more(door: &mut Door, stage: Stage, host: u32) -> Option<GuestId> {
    let (id, dropped) = door.enter(address(host));
    match stage {
        Stage::Unproven => dropped,
        Stage::Proven | Stage::Parting => door.advance(id, stage),
    }
}

#[test]
fn a_prefix_with_too_many_loses_its_own_oldest() {
    for stage in STAGES {
        let (all, each) = stage.bounds();
        let (mut door, ids) = crowded(stage, 1, each);
        assert_eq!(one_more(&mut door, stage, 1), None, "another has room");
        assert_eq!(one_more(&mut door, stage, 0), Some(ids[0]));
        assert_eq!(one_more(&mut door, stage, 0), Some(ids[1]));
        assert_eq!((door.at(stage), door.report.dropped), (each + 1, 2));
        assert!(each < all);
    }
}

#[test]
fn a_full_stage_drops_the_oldest_of_a_prefix_that_has_most() {
    for stage in STAGES {
        let (all, _) = stage.bounds();
        let hosts = all as u32 / 2;
        // Two of each, and the second of host 0 leaves for another.
        let (mut door, ids) = crowded(stage, hosts, all);
        door.leave(ids[0]);
        assert_eq!(one_more(&mut door, stage, 1000), None, "it is full with this one");
        assert_eq!(one_more(&mut door, stage, 1001), Some(ids[1]), "host 0 has but one");
        assert_eq!(one_more(&mut door, stage, 1002), Some(ids[2]));
        assert_eq!(door.at(stage), all);
    }
}

#[test]
fn with_one_of_each_prefix_the_oldest_of_all_goes() {
    for stage in STAGES {
        let (all, _) = stage.bounds();
        let (mut door, ids) = crowded(stage, all as u32, all);
        assert_eq!(one_more(&mut door, stage, 1000), Some(ids[0]));
    }
}

#[test]
fn stages_have_their_own_room() {
    let (mut door, _) = crowded(Stage::Unproven, 256, 256);
    let (id, dropped) = door.enter(address(999));
    assert!(dropped.is_some());
    for stage in [Stage::Proven, Stage::Parting] {
        assert_eq!(door.advance(id, stage), None, "{stage:?} is empty");
    }
    assert_eq!(STAGES.map(|stage| door.at(stage)), [255, 0, 1]);
    door.leave(id);
    door.leave(id);
    assert_eq!(door.advance(id, Stage::Proven), None, "who is out stays out");
    assert_eq!(STAGES.map(|stage| door.at(stage)), [255, 0, 0]);
}

#[test]
fn a_prefix_is_an_ipv4_address_or_64_bits_of_ipv6() {
    let same = |a: &str, b: &str| Prefix::of(a.parse().unwrap()) == Prefix::of(b.parse().unwrap());
    assert!(same("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff"));
    assert!(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    assert!(!same("192.0.2.1", "192.0.2.2"));
    assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
}

#[test]
fn refusals_are_told_at_once_and_then_once_a_minute() {
    let mut door = Door::default();
    let at = |seconds| Instant::from_nanos(1) + Duration::from_secs(seconds);
    door.enter(address(1));
    assert_eq!(door.tell(at(0)), None, "nobody was refused");
    door.report.strangers += 1;
    let told = door.tell(at(100)).unwrap();
    assert_eq!((told.entered, told.strangers), (1, 1));
    assert_eq!((door.tell(at(200)), door.poll_timeout()), (None, None));
    door.report.strangers += 5;
    assert!(door.tell(at(200)).is_some(), "a minute has passed");
    door.report.late += 2;
    door.report.unproven += 3;
    assert_eq!((door.tell(at(259)), door.poll_timeout()), (None, Some(at(260))));
    let told = door.tell(at(260)).unwrap();
    assert_eq!((told.strangers, told.late, told.unproven), (0, 2, 3));
}

proptest! {
    /// Any order of events: bounds hold, counts are right, and a newcomer is never the one that goes.
    #[test]
    fn no_stage_ever_has_too_many(events in vec((0..5u8, 0..40u32), 0..1500)) {
        let mut door = Door::default();
        let mut there: BTreeMap<GuestId, (Stage, u32)> = BTreeMap::new();
        for (kind, pick) in events {
            let oldest = there.keys().nth(pick as usize % there.len().max(1)).copied();
            let (came, dropped) = match (kind, oldest) {
                (3, Some(id)) | (4, Some(id)) => {
                    let stage = if kind == 3 { Stage::Proven } else { Stage::Parting };
                    there.get_mut(&id).unwrap().0 = stage;
                    (id, door.advance(id, stage))
                }
                (2, Some(id)) => {
                    door.leave(id);
                    there.remove(&id);
                    continue;
                }
                _ => {
                    let (id, dropped) = door.enter(address(pick));
                    there.insert(id, (Stage::Unproven, pick));
                    (id, dropped)
                }
            };
            if let Some(dropped) = dropped {
                prop_assert_ne!(dropped, came);
                let (stage, _) = there.remove(&dropped).expect("it was there");
                prop_assert_eq!(stage, there[&came].0, "of the same stage");
            }
            for stage in STAGES {
                let of_stage: Vec<_> = there.values().filter(|it| it.0 == stage).collect();
                let (all, each) = stage.bounds();
                prop_assert_eq!(of_stage.len(), door.at(stage));
                prop_assert!(of_stage.len() <= all);
                let most = (0..40).map(|host| of_stage.iter().filter(|it| it.1 == host).count());
                prop_assert!(most.max() <= Some(each));
            }
        }
    }
}
