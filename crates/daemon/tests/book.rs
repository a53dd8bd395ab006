//! Runs the steps of the operator's guide: all its pages in order, on one small mesh.

use crate::guide;
use crate::stage::Stage;
use crate::world::{World, network};

#[test]
fn an_evening_goes_as_the_guide_says() {
    network::inside("an_evening_goes_as_the_guide_says", || {
        let world = World::new();
        let mut stage = Stage::new(&world);
        let pages = guide::summary().into_iter().filter(|it| it.starts_with("operate/"));
        for step in pages.flat_map(|page| guide::steps(&page)) {
            eprintln!("{}", step.place);
            stage.perform(&step);
        }
    });
}
