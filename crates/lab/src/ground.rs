//! The parts of a scenario that a page's map needs.

use radio::Station;
use report::{Ground, Line, Place};
use sim::scenario::Scenario;

/// The map's data: routers, links, and the hops of routes.
pub fn ground(scenario: &Scenario, routes: Vec<Line>) -> Ground {
    let places = scenario.routers.iter().map(|router| Place {
        name: router.name.clone(),
        x_m: router.x_m,
        y_m: router.y_m,
    });
    let keys = scenario
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), key.value.clone(), key.meaning.to_owned()));
    Ground {
        description: scenario.description.clone(),
        routers: places.collect(),
        gateway: scenario.gateway,
        links: links(scenario),
        routes,
        range_m: scenario.range_m,
        keys: keys.collect(),
    }
}

fn links(scenario: &Scenario) -> Vec<Line> {
    let routers = scenario.routers.len();
    let pairs = (0..routers).flat_map(|from| (from + 1..routers).map(move |to| (from, to)));
    lines(scenario, pairs)
}

/// The hops of the scenario's static routes.
pub fn static_routes(scenario: &Scenario) -> Vec<Line> {
    let mut hops: Vec<_> = scenario
        .receivers
        .iter()
        .map(|receiver| scenario.path(*receiver))
        .flat_map(|path| path.windows(2).map(|hop| (hop[0], hop[1])).collect::<Vec<_>>())
        .collect();
    hops.sort_unstable();
    hops.dedup();
    lines(scenario, hops)
}

/// The links of these pairs of routers, if frames can be received on them.
pub fn lines(scenario: &Scenario, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Line> {
    let line = |(from, to): (usize, usize)| {
        let link = scenario.links.get(Station(from as u16), Station(to as u16))?;
        link.decodable.then_some(Line { from, to, loss: link.loss })
    };
    pairs.into_iter().filter_map(line).collect()
}
