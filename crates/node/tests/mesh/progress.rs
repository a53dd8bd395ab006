//! Large transfers, with random delays of disks, clients and origins: as long as any client reads, some client makes
//! progress.

use crate::net::{Call, Dice, Mesh, Page, Plan, noise};
use std::time::Duration;

const URL: &str = "http://o.test/a";
/// As many bytes as the daemon reads at once.
const PIECE_MAX: u64 = 64 * 1024;
/// The next bytes may take no longer than this; the disks are fast again after a fourth of it.
const TIMEOUT: Duration = Duration::from_secs(25);

/// A router's memory and links, and an origin, as the dice will.
fn world(dice: &mut Dice, count: usize) -> Mesh {
    let mut plan = Plan::default().seeded(dice.below(u64::MAX) >> 20);
    plan.node.memory_bytes = 1 << (20 + dice.below(4));
    plan.rate = [4_000_000, 20_000_000, 100_000_000][dice.below(3) as usize];
    plan.latency = Duration::from_micros(50 + dice.below(5_000));
    plan.node.disk_delay = Duration::from_micros(dice.below(3_000));
    let mut mesh = Mesh::chain_of(&plan, count);
    let mut page = Page::new(noise(dice.below(u64::MAX), 6_000_000)).fresh(600);
    page.chunked = dice.once_in(4);
    page.piece = 2_000 + dice.below(PIECE_MAX - 2_000) as usize;
    page.pause = Duration::from_micros(dice.below(2_000));
    mesh.origin.put(URL, page);
    mesh
}

/// All disks become slower and faster from time to time, until every reader has all of the object.
fn read_along(mesh: &mut Mesh, dice: &mut Dice, readers: &[usize]) {
    let (mut before, mut waited) = (0, Duration::ZERO);
    while readers.iter().any(|id| mesh.client(*id).end.is_none()) {
        let wait = Duration::from_millis(5 + dice.below(60));
        mesh.pass(wait);
        let got = readers.iter().map(|id| mesh.client(*id).content.len()).sum();
        waited = if got > before { Duration::ZERO } else { waited + wait };
        before = got;
        assert!(waited < TIMEOUT, "nothing comes any more behind {got} bytes");
        if waited > TIMEOUT / 4 {
            (0..mesh.count()).for_each(|node| mesh.disk(node).slow_down(Duration::ZERO));
        } else if dice.once_in(3) {
            let node = dice.below(mesh.count() as u64) as usize;
            let most = [0, 1, 30, 300, 700][dice.below(5) as usize];
            mesh.disk(node).slow_down(Duration::from_millis(most));
        }
    }
    assert!(readers.iter().all(|id| mesh.client(*id).is_ok()));
}

#[test]
fn a_reader_behind_two_hops_receives_something() {
    for seed in 0..30 {
        let mut dice = Dice(seed);
        let mut mesh = world(&mut dice, 3);
        let count = 1 + dice.below(2);
        let readers: Vec<usize> = (0..count).map(|_| mesh.call(2, Call::get(URL))).collect();
        read_along(&mut mesh, &mut dice, &readers);
    }
}

/// Where memory is short little is granted, and the origin's pieces are larger.
#[test]
fn what_an_origin_has_sent_beyond_its_grant_does_not_end_it() {
    for seed in 0..30 {
        let mut dice = Dice(seed);
        let mut plan = Plan::default().seeded(seed);
        plan.node.memory_bytes = 1 << 20;
        plan.rate = 100_000_000;
        let mut mesh = Mesh::chain_of(&plan, 2);
        let mut page = Page::new(noise(seed, 3_000_000)).fresh(600).steady();
        page.piece = (PIECE_MAX - dice.below(PIECE_MAX / 2)) as usize;
        mesh.origin.put(URL, page);
        let id = mesh.call(1, Call::get(URL));
        mesh.pass_seconds(10);
        assert!(mesh.client(id).is_ok(), "seed {seed}: {} bytes", mesh.client(id).content.len());
    }
}
