//! What the report needs of a scenario for its map.

use radio::Station;
use sim::report::{Ground, Line, Place};
use sim::scenario::Scenario;

/// The ground that a run took place on.
pub fn ground(scenario: &Scenario) -> Ground {
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
        routes: routes(scenario),
        range_m: scenario.range_m,
        keys: keys.collect(),
    }
}

fn links(scenario: &Scenario) -> Vec<Line> {
    let routers = scenario.routers.len();
    let pairs = (0..routers).flat_map(|from| (from + 1..routers).map(move |to| (from, to)));
    pairs.filter_map(|(from, to)| line(scenario, from, to)).collect()
}

fn routes(scenario: &Scenario) -> Vec<Line> {
    let mut pairs: Vec<_> = scenario
        .receivers
        .iter()
        .flat_map(|receiver| {
            let path = scenario.path(*receiver);
            path.windows(2).map(|hop| (hop[0], hop[1])).collect::<Vec<_>>()
        })
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter().filter_map(|(from, to)| line(scenario, from, to)).collect()
}

/// The link between two routers, if frames can be received over it.
fn line(scenario: &Scenario, from: usize, to: usize) -> Option<Line> {
    let link = scenario.links.get(Station(from as u16), Station(to as u16))?;
    link.decodable.then_some(Line { from, to, loss: link.loss })
}
