//! The same seed gives the same run, output for output.

use crate::net::{Call, Dice, Mesh, Pace, Page, Plan, noise};

pub fn busy(seed: u64, is_watched: bool) -> blake3::Hash {
    let mut dice = Dice(seed);
    let mut mesh = Mesh::tree_of(&Plan::listening().seeded(seed), &[0, 1, 1, 3]);
    (0..5).for_each(|node| mesh.air.listen(node, 100, seed));
    (0..5).filter(|_| is_watched).for_each(|node| mesh.watch(node));
    for number in 0..6 {
        let page = Page::new(noise(number, 1_000 << (number * 2))).etag("a").fresh(5).steady();
        mesh.origin.put(&format!("http://o.test/{number}"), page);
    }
    for _ in 0..20 {
        let url = format!("http://o.test/{}", dice.below(6));
        let call =
            Call::get(&url).pace(if dice.once_in(3) { Pace::Slow(3_000) } else { Pace::Fast });
        mesh.call(dice.below(5) as usize, call);
        mesh.pass_millis(dice.below(700));
    }
    mesh.restart(3);
    mesh.done();
    mesh.trace.finish()
}

#[test]
fn a_busy_mesh_with_the_same_seed_runs_the_same_way() {
    let once = busy(1, false);
    assert_eq!(once, busy(1, false));
    assert_ne!(once, busy(2, false));
}
