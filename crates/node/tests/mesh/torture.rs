//! Chance: meshes of any shape, pages and clients of all kinds, and everything that can break. What
//! must always hold is checked by `net` at every step. This file checks that each client gets the right bytes or an
//! honest error, and that nothing is left behind.

use crate::net::{
    Call, Client, Dice, Mesh, Pace, Page, Plan, Stranger, cut, gateway, judge, noise, via,
};
use http::Method;
use node::{FetchError, RouteTable};
use wire::Selection;

const URLS: u64 = 10;

#[test]
fn nothing_ever_breaks_a_rule() {
    let runs: Vec<_> = (0..25).map(rules_hold).collect();
    judge("mesh/torture", &runs);
}

/// The same, with schemes that ask routers off the way to the gateway.
#[test]
fn nothing_breaks_a_rule_off_the_way() {
    const SCHEMES: [Selection; 4] =
        [Selection::PhHints, Selection::PhBcp, Selection::Auto, Selection::Bcp];
    let scheme = |seed: u64| SCHEMES[seed as usize % SCHEMES.len()];
    let runs: Vec<_> = (1000..1016).map(|seed| rules_hold_with(seed, Some(scheme(seed)))).collect();
    judge("mesh/torture-off-the-way", &runs);
}

fn rules_hold(seed: u64) -> blake3::Hash {
    rules_hold_with(seed, None)
}

fn rules_hold_with(seed: u64, selection: Option<Selection>) -> blake3::Hash {
    let mut mesh = run(seed, 100, selection);
    mesh.done();
    let answered = mesh.clients().iter().filter(|client| client.head.is_some());
    answered.for_each(nothing_private_was_shared);
    mesh.digest()
}

fn nothing_private_was_shared(client: &Client) {
    let control = client.header("cache-control");
    let shared = client.header("cache-status").contains("hit");
    assert!(!shared || !control.contains("private"), "{client:?}");
}

struct World {
    mesh: Mesh,
    dice: Dice,
    parents: Vec<usize>,
    /// A sender outside the mesh, which sends true and false units.
    stranger: Stranger,
    lies: Dice,
}

fn run(seed: u64, steps: usize, selection: Option<Selection>) -> Mesh {
    let mut dice = Dice(seed);
    let parents = shape(&mut dice);
    let listen = !seed.is_multiple_of(3);
    let plan = plan(seed, &mut dice);
    let selection = selection.unwrap_or(plan.selection);
    let plan = Plan { selection, overhear: listen.then_some(1 << 20), ..plan };
    let mut mesh = Mesh::tree_of(&plan, &parents);
    if selection.leaves_the_way() {
        mesh.chart();
    }
    if listen {
        (0..mesh.count()).for_each(|node| mesh.air.listen(node, seed * 40 % 900, seed));
    }
    mesh.names.insert("o.test".into(), vec![[192, 0, 2, 1].into()]);
    for number in 0..URLS {
        mesh.origin.put(&url(number), page(&mut dice));
    }
    let (stranger, lies) = (Stranger::new(50_000), Dice(seed ^ 0x11e5));
    let mut world = World { mesh, dice, parents, stranger, lies };
    for _ in 0..steps {
        world.happen();
        world.murmur();
        let wait = world.dice.below(60);
        world.mesh.pass_millis(wait);
    }
    world.calm_down()
}

fn shape(dice: &mut Dice) -> Vec<usize> {
    let count = 1 + dice.below(6) as usize;
    let chain = dice.once_in(2);
    (0..count).map(|it| if chain { it } else { dice.below(it as u64 + 1) as usize }).collect()
}

fn plan(seed: u64, dice: &mut Dice) -> Plan {
    let selection = if dice.once_in(3) { Selection::Thcp } else { Selection::PhThcp };
    let mut plan = Plan { selection, ..Plan::default() }.seeded(seed);
    plan.node.memory_bytes = 1 << 20;
    plan.node.store_bytes = 6 << 20;
    plan.node.object_bytes_max = 1_500_000;
    plan.node.disk_delay = std::time::Duration::from_millis(dice.below(4));
    plan.configured = dice.once_in(3);
    plan.key = dice.once_in(3).then_some([4; 32]);
    plan.clocks = (0..7).map(|_| if dice.once_in(5) { -2_000_000_000 } else { 0 }).collect();
    plan
}

fn url(number: u64) -> String {
    format!("http://o.test/{number}")
}

fn page(dice: &mut Dice) -> Page {
    let length = [3, 20_000, 200_000, 1_600_000][dice.below(4) as usize];
    let number = if dice.once_in(5) { dice.below(3) } else { dice.below(u64::MAX) };
    let body = noise(number, dice.below(length) as usize);
    let mut page = Page::new(if dice.once_in(6) { body.repeat(2).into() } else { body });
    let control = ["max-age=20", "max-age=60, stale-while-revalidate=30", "private", "no-cache"];
    page = page.with("cache-control", control[dice.below(4) as usize]);
    page.chunked = dice.once_in(3);
    page.piece = 500 + dice.below(16_000) as usize;
    page.pause = std::time::Duration::from_micros(dice.below(600));
    page.head_after = Some(std::time::Duration::from_micros(dice.below(50_000)));
    if dice.once_in(2) {
        page = page.etag(&dice.below(u64::MAX).to_string());
    }
    if dice.once_in(6) {
        page.breaks_at = Some(dice.below(page.body.len() as u64 + 1) as usize);
    }
    if dice.once_in(4) {
        page = page.with("vary", "accept-language");
    }
    page
}

impl World {
    fn any(&mut self) -> usize {
        self.dice.below(self.mesh.count() as u64) as usize
    }

    fn happen(&mut self) {
        let node = self.any();
        match self.dice.below(34) {
            0 => {
                let url = url(self.dice.below(URLS));
                self.mesh.origin.put(&url, page(&mut self.dice));
            }
            1 => {
                let down = self.dice.once_in(2).then_some(FetchError::Unreachable);
                self.mesh.origin.down = down;
            }
            2 => self.mesh.restart(node),
            3 => self.mesh.kill(node),
            4 => self.mesh.power_off(node),
            5 | 6 => self.mesh.start_if_off(node),
            7 => self.mesh.cut(node, self.parent(node)),
            8 | 9 if node > 0 => self.mesh.mend(node, self.parent(node)),
            10 => {
                let table = self.table(node);
                self.mesh.route(node, table);
                if self.mesh.plan(node).selection.leaves_the_way() {
                    self.mesh.chart();
                }
            }
            11 => {
                let seconds = self.dice.below(30);
                self.mesh.pass_seconds(seconds);
            }
            12 | 13 if !self.mesh.clients().is_empty() => {
                let id = self.dice.below(self.mesh.clients().len() as u64) as usize;
                self.mesh.leave(id);
            }
            14 => self.spoil(node),
            15 => self.mesh.break_link(node as u64 + 7),
            16 => {
                let ahead = [-2_000_000_000, 0][self.dice.below(2) as usize];
                self.mesh.set_clock(node, ahead);
            }
            _ => {
                let call = self.call();
                self.mesh.call(node, call);
            }
        }
    }

    /// A unit of a page, or of none, is said into the air: true or false, whole or in part.
    fn murmur(&mut self) {
        let dice = &mut self.lies;
        let page = self.mesh.origin.page(&url(dice.below(URLS)));
        let units = cut(&page.body).1;
        let Some((name, unit)) = units.get(dice.below(units.len() as u64 + 1) as usize) else {
            return;
        };
        let mut said = unit.to_vec();
        said[0] ^= u8::from(dice.once_in(2));
        let begin = if dice.once_in(2) { 0 } else { dice.below(unit.len() as u64) as usize };
        let end = if dice.once_in(2) { unit.len() } else { begin + 1 };
        let segments = self.stranger.say(*name, &said.into(), begin..end);
        for node in 0..self.mesh.count() {
            self.mesh.hear(node, segments.clone());
        }
    }

    /// A disk begins to fail, or works again.
    fn spoil(&mut self, node: usize) {
        let (which, fails) = (self.dice.below(5), self.dice.once_in(3));
        let disk = self.mesh.disk(node);
        *match which {
            0 => &mut disk.fail_appends,
            1 => &mut disk.fail_changes,
            2 => &mut disk.corrupt,
            3 => &mut disk.fail_reads,
            _ => &mut disk.lose_segments,
        } = fails;
    }

    fn parent(&self, node: usize) -> usize {
        self.parents[node.saturating_sub(1)]
    }

    /// The right way, or any other.
    fn table(&mut self, node: usize) -> RouteTable {
        match (self.dice.below(5), node) {
            (0, _) => RouteTable::default(),
            (1, _) => via(self.any(), Some(0), 2),
            (2, _) => via(self.any(), None, 2),
            (_, 0) => gateway(0),
            _ => via(self.parent(node), Some(0), 1),
        }
    }

    fn call(&mut self) -> Call {
        let dice = &mut self.dice;
        let url = url(dice.below(URLS));
        let mut call = match dice.below(20) {
            0 => Call::head(&url),
            1 => Call { has_body: true, ..Call::new(Method::POST, &url) },
            _ => Call::get(&url),
        };
        call.pace = match dice.below(10) {
            0 | 1 => Pace::Slow(500 + dice.below(5_000)),
            2 => Pace::Stalls(dice.below(100_000)),
            3 => Pace::Leaves(dice.below(300_000)),
            _ => Pace::Fast,
        };
        match dice.below(12) {
            0 => call.with("range", &format!("bytes={}-", dice.below(300_000))),
            1 => call.with("cache-control", "no-cache"),
            2 => call.with("cache-control", "max-stale=10"),
            3 => call.with("if-none-match", "\"x\""),
            4 => call.with("accept-language", ["de", "fr"][dice.below(2) as usize]),
            5 => call.dialling(["192.0.2.1:80", "192.0.2.9:80"][dice.below(2) as usize]),
            _ => call,
        }
    }

    /// Everything works again, and those who do not read leave or go on.
    fn calm_down(mut self) -> Mesh {
        let mesh = &mut self.mesh;
        mesh.origin.down = None;
        for node in 0..mesh.count() {
            let disk = mesh.disk(node);
            (disk.fail_appends, disk.fail_changes, disk.fail_reads) = (false, false, false);
            (disk.corrupt, disk.lose_segments) = (false, false);
            mesh.start_if_off(node);
            if node > 0 {
                mesh.mend(node, self.parents[node - 1]);
            }
            let way = if node == 0 { gateway(0) } else { via(self.parents[node - 1], Some(0), 1) };
            mesh.route(node, way);
        }
        for id in 0..mesh.clients().len() {
            let client = mesh.client(id);
            if client.end.is_none() && matches!(client.call.pace, Pace::Stalls(_)) {
                if id % 2 == 0 { mesh.hurry(id) } else { mesh.leave(id) }
            }
        }
        self.mesh
    }
}
