//! Where the sender finds old units: by name, by likeness, and by the URL whose body they began.
//!
//! *Cost:* about 130 bytes of memory a unit that is indexed, and two for any other that is held.

use super::Span;
use super::features::{Features, key_of};
use crate::hasher::Map;
use std::collections::VecDeque;
use store::Mark;

/// The units of one direction's history, as its sender knows them.
#[derive(Debug, Default)]
pub struct Index {
    /// The oldest position in the tables; never below `begin`.
    indexed: u64,
    /// Units in the tables at most.
    units_max: usize,
    /// What is in the tables, from `indexed` on.
    marks: VecDeque<Mark>,
    /// The lengths of all units from `begin` on; none is above 16 KiB.
    lengths: VecDeque<u16>,
    /// The position of the first length: the oldest that both ends hold.
    begin: u64,
    by_name: Map<u64, u64>,
    alike: [Map<u32, u64>; 4],
    by_url: Map<u64, u64>,
}

impl Index {
    /// An empty index, of at most this many units.
    pub fn new(units_max: usize) -> Self {
        Self { units_max: units_max.max(1), ..Self::default() }
    }

    /// At most this many units are indexed from now on.
    pub fn limit(&mut self, units_max: usize) {
        self.units_max = units_max.max(1);
        let before = self.marks.len();
        while self.marks.len() > self.units_max {
            self.drop_oldest();
        }
        if self.marks.len() < before {
            self.shrink();
        }
    }

    /// Gives back memory that others are to have.
    fn shrink(&mut self) {
        self.marks.shrink_to_fit();
        self.lengths.shrink_to_fit();
        self.by_name.shrink_to_fit();
        self.by_url.shrink_to_fit();
        self.alike.iter_mut().for_each(Map::shrink_to_fit);
    }

    /// How many units it has.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// The position after the newest.
    pub fn end(&self) -> u64 {
        self.begin + self.lengths.len() as u64
    }

    /// The oldest position that may be referred to.
    pub fn floor(&self) -> u64 {
        self.begin
    }

    /// Forgets everything; the next unit has this position.
    pub fn clear(&mut self, position: u64) {
        let units_max = self.units_max;
        *self = Self { units_max, begin: position, indexed: position, ..Self::default() };
    }

    /// Positions below are not held by both ends any more.
    pub fn raise_floor(&mut self, floor: u64) {
        while self.begin < floor && self.lengths.pop_front().is_some() {
            self.begin += 1;
        }
        while self.indexed < self.begin {
            self.drop_oldest();
        }
    }

    /// Forgets the units from this position on.
    pub fn truncate(&mut self, end: u64) {
        while self.end() > end && self.lengths.pop_back().is_some() {}
        while self.indexed + self.marks.len() as u64 > self.end().max(self.indexed) {
            let position = self.indexed + self.marks.len() as u64 - 1;
            if let Some(mark) = self.marks.pop_back() {
                self.remove(position, &mark);
            }
        }
        self.indexed = self.indexed.min(self.end());
    }

    /// Adds the next unit.
    pub fn push(&mut self, mark: Mark) {
        let position = self.end();
        self.lengths.push_back(mark.length.min(u16::MAX.into()) as u16);
        if self.marks.len() >= self.units_max {
            self.drop_oldest();
        }
        if self.marks.is_empty() {
            self.indexed = position;
        }
        self.by_name.insert(key_of(&mark.name), position);
        for (table, feature) in self.alike.iter_mut().zip(mark.features) {
            if feature != 0 {
                table.insert(feature, position);
            }
        }
        if mark.url != 0 {
            self.by_url.insert(mark.url, position);
        }
        self.marks.push_back(mark);
    }

    /// The position of the unit with this name.
    pub fn find(&self, name: &super::Name) -> Option<u64> {
        let position = *self.by_name.get(&key_of(name))?;
        let mark = self.mark(position)?;
        (mark.name == *name).then_some(position)
    }

    /// The position of the unit that shares most features; of several, the one nearest to `near`.
    pub fn most_alike(&self, features: &Features, near: u64) -> Option<u64> {
        let mut votes: [(u64, u32); 4] = [(0, 0); 4];
        for (table, feature) in self.alike.iter().zip(features) {
            let Some(&position) = table.get(feature) else { continue };
            let vote = votes.iter_mut().find(|(at, count)| *count == 0 || *at == position);
            if let Some(vote) = vote {
                *vote = (position, vote.1 + 1);
            }
        }
        let best = votes.iter().filter(|(_, count)| *count > 0);
        best.max_by_key(|(at, count)| (*count, u64::MAX - at.abs_diff(near))).map(|(at, _)| *at)
    }

    /// Where the last body of this URL begins.
    pub fn of_url(&self, url: u64) -> Option<u64> {
        self.by_url.get(&url).copied()
    }

    /// The units that hold about `before` bytes in front of a position and `after` bytes from it on.
    pub fn around(&self, position: u64, before: usize, after: usize) -> Span {
        let position = position.clamp(self.floor(), self.end());
        let (mut first, mut bytes) = (position, 0);
        while first > self.floor() && bytes < before {
            first -= 1;
            bytes += self.length(first);
        }
        let (mut end, mut bytes) = (position, 0);
        while end < self.end() && bytes < after {
            bytes += self.length(end);
            end += 1;
        }
        Span { first, count: (end - first) as u32 }
    }

    /// The bytes of a span.
    pub fn bytes(&self, span: Span) -> usize {
        span.positions().map(|position| self.length(position)).sum()
    }

    fn length(&self, position: u64) -> usize {
        let at = position.checked_sub(self.begin).map(|at| at as usize);
        at.and_then(|at| self.lengths.get(at)).map_or(0, |length| usize::from(*length))
    }

    fn mark(&self, position: u64) -> Option<&Mark> {
        self.marks.get(position.checked_sub(self.indexed)? as usize)
    }

    fn drop_oldest(&mut self) {
        let position = self.indexed;
        self.indexed += 1;
        if let Some(mark) = self.marks.pop_front() {
            self.remove(position, &mark);
        }
    }

    /// Removes a unit from the tables, where no newer one has taken its place.
    fn remove(&mut self, position: u64, mark: &Mark) {
        fn unless_newer<K: std::hash::Hash + Eq>(map: &mut Map<K, u64>, key: &K, position: u64) {
            if map.get(key) == Some(&position) {
                map.remove(key);
            }
        }
        unless_newer(&mut self.by_name, &key_of(&mark.name), position);
        for (table, feature) in self.alike.iter_mut().zip(&mark.features) {
            unless_newer(table, feature, position);
        }
        unless_newer(&mut self.by_url, &mark.url, position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(number: u8) -> Mark {
        let features = [u32::from(number) + 1; 4];
        Mark { name: [number; 16], features, url: u64::from(number), length: 1000 }
    }

    #[test]
    fn what_was_pushed_is_found_until_it_is_forgotten() {
        let mut index = Index::new(100);
        (0..50).for_each(|number| index.push(mark(number)));
        assert_eq!((index.find(&[7; 16]), index.find(&[50; 16])), (Some(7), None));
        assert_eq!(index.most_alike(&[0, 0, 9, 0], 0), Some(8));
        assert_eq!((index.of_url(9), index.of_url(99)), (Some(9), None));
        index.truncate(40);
        assert_eq!(
            (index.find(&[40; 16]), index.find(&[39; 16]), index.end()),
            (None, Some(39), 40)
        );
        index.raise_floor(10);
        assert_eq!((index.find(&[9; 16]), index.find(&[10; 16])), (None, Some(10)));
        assert_eq!(index.around(12, 5000, 3000), Span { first: 10, count: 5 });
        assert_eq!(index.bytes(Span { first: 8, count: 4 }), 2000);
        index.push(mark(77));
        assert_eq!(index.find(&[77; 16]), Some(40));
    }

    #[test]
    fn its_memory_is_bounded_and_the_oldest_go_first() {
        let mut index = Index::new(10);
        (0..50).for_each(|number| index.push(mark(number)));
        assert_eq!((index.find(&[39; 16]), index.find(&[40; 16])), (None, Some(40)));
        assert_eq!(index.by_name.len() + index.by_url.len() + index.alike[0].len(), 30);
        assert_eq!(
            index.bytes(Span { first: 0, count: 50 }),
            50_000,
            "it may still be a dictionary"
        );
    }

    #[test]
    fn with_less_room_the_oldest_go_and_with_more_none_comes_back() {
        let mut index = Index::new(100);
        (0..50).for_each(|number| index.push(mark(number)));
        index.limit(10);
        assert_eq!((index.find(&[39; 16]), index.find(&[40; 16])), (None, Some(40)));
        index.limit(11);
        index.push(mark(50));
        assert_eq!((index.find(&[40; 16]), index.find(&[50; 16])), (Some(40), Some(50)));
        index.push(mark(51));
        assert_eq!((index.find(&[40; 16]), index.find(&[41; 16])), (None, Some(41)));
    }

    #[test]
    fn a_unit_that_came_again_stays_when_the_older_one_goes() {
        let mut index = Index::new(100);
        [1, 2, 1].into_iter().for_each(|number| index.push(mark(number)));
        index.raise_floor(1);
        assert_eq!(index.find(&[1; 16]), Some(2));
        index.clear(500);
        index.push(mark(1));
        assert_eq!((index.find(&[1; 16]), index.floor()), (Some(500), 500));
    }

    #[test]
    fn cutting_off_more_than_is_indexed_leaves_it_sound() {
        let mut index = Index::new(5);
        (0..20).for_each(|number| index.push(mark(number)));
        index.truncate(3);
        index.push(mark(200));
        assert_eq!(
            (index.end(), index.find(&[200; 16]), index.find(&[19; 16])),
            (4, Some(3), None)
        );
    }

    #[test]
    fn the_unit_at_the_floor_is_found_and_none_below_it() {
        let mut index = Index::new(100);
        (0..20).for_each(|number| index.push(mark(number)));
        index.raise_floor(10);
        for (number, found) in [(9, None), (10, Some(10))] {
            let Mark { name, features, url, .. } = mark(number);
            assert_eq!((index.find(&name), index.of_url(url)), (found, found));
            assert_eq!(index.most_alike(&features, 0), found);
        }
        index.raise_floor(5);
        assert_eq!(index.floor(), 10, "it does not fall");
        index.raise_floor(1000);
        assert_eq!((index.floor(), index.end()), (20, 20), "nor rise beyond the end");
        index.push(mark(30));
        assert_eq!(index.find(&[30; 16]), Some(20));
    }

    #[test]
    fn most_alike_is_the_unit_that_shares_most_features_then_the_nearest() {
        let mut index = Index::new(100);
        index.push(Mark { features: [1, 2, 3, 4], ..mark(0) });
        index.push(Mark { features: [5, 6, 7, 8], ..mark(1) });
        assert_eq!(index.most_alike(&[1, 2, 3, 8], 1), Some(0));
        assert_eq!(index.most_alike(&[1, 6, 7, 8], 0), Some(1));
        let both = [1, 2, 7, 8];
        let nearest = [0, 1, 99].map(|near| index.most_alike(&both, near));
        assert_eq!(nearest, [Some(0), Some(1), Some(1)]);
        // A feature counts only in its own place.
        assert_eq!(index.most_alike(&[2, 1, 4, 3], 0), None);
    }

    #[test]
    fn a_unit_without_features_or_url_is_found_by_its_name_alone() {
        let mut index = Index::new(100);
        index.push(Mark { features: [0; 4], url: 0, ..mark(1) });
        assert_eq!((index.most_alike(&[0; 4], 0), index.of_url(0)), (None, None));
        assert_eq!(index.find(&[1; 16]), Some(0));
        let mut other = [1; 16];
        other[15] = 2;
        assert_eq!(index.find(&other), None, "the tables have only half of its name");
    }

    #[test]
    fn a_span_around_a_position_has_no_more_units_than_its_bytes_need() {
        let mut index = Index::new(100);
        (0..50).for_each(|number| index.push(mark(number)));
        // Each has a thousand bytes.
        assert_eq!(index.around(20, 2000, 3000), Span { first: 18, count: 5 });
        assert_eq!(index.around(20, 2001, 3001), Span { first: 17, count: 7 });
        assert_eq!(index.around(20, 0, 0), Span { first: 20, count: 0 });
        assert_eq!(index.around(49, 0, 9000), Span { first: 49, count: 1 });
        assert_eq!(index.around(99, 1000, 1000), Span { first: 49, count: 1 });
        index.raise_floor(10);
        assert_eq!(index.around(3, 1000, 1000), Span { first: 10, count: 1 });
    }

    /// A change of a history.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u8),
        RaiseFloor(u64),
        Truncate(u64),
        Clear(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (1..20u8).prop_map(Step::Push),
            2 => (0..60u64).prop_map(Step::RaiseFloor),
            2 => (0..60u64).prop_map(Step::Truncate),
            1 => (0..60u64).prop_map(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn units_are_found_only_if_both_ends_hold_them(steps in prop::collection::vec(step(), 0..60)) {
            const INDEXED: usize = 7;
            let mut index = Index::new(INDEXED);
            // The numbers of the units that both ends hold, and the position of the first.
            let (mut held, mut begin) = (VecDeque::new(), 0);
            for step in steps {
                match step {
                    Step::Push(number) => {
                        index.push(mark(number));
                        held.push_back(number);
                        let newest = begin + held.len() as u64 - 1;
                        prop_assert_eq!(index.find(&[number; 16]), Some(newest));
                    }
                    Step::RaiseFloor(floor) => {
                        index.raise_floor(floor);
                        while begin < floor && held.pop_front().is_some() {
                            begin += 1;
                        }
                    }
                    Step::Truncate(end) => {
                        index.truncate(end);
                        held.truncate(end.saturating_sub(begin) as usize);
                    }
                    Step::Clear(position) => {
                        index.clear(position);
                        held.clear();
                        begin = position;
                    }
                }
                prop_assert_eq!((index.floor(), index.end()), (begin, begin + held.len() as u64));
                for number in 1..20 {
                    let Mark { name, features, url, .. } = mark(number);
                    let found = index.find(&name);
                    prop_assert_eq!(index.of_url(url), found);
                    prop_assert_eq!(index.most_alike(&features, 0), found);
                    if let Some(position) = found {
                        let at = position.checked_sub(begin).map(|at| at as usize);
                        prop_assert_eq!(at.and_then(|at| held.get(at)), Some(&number));
                    }
                }
                prop_assert!(index.by_name.len() <= INDEXED && index.by_url.len() <= INDEXED);
            }
        }
    }
}
