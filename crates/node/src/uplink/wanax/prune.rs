//! Which chunks of a root cross as names, and which with their content (Wanax §3.2, chunk name hints).

use super::hints::Hints;
use super::{ChunkName, Entry, Kind, Listing, names_of};
use wire::Instant;

/// A chunk of the tree.
struct Node {
    start: u32,
    end: u32,
    name: ChunkName,
    /// R is believed to have it.
    is_hinted: bool,
    /// So it is, or something below it.
    has_hinted: bool,
    /// Its parts in the next level.
    children: std::ops::Range<usize>,
}

/// Lists a root, and notes the chunks that are looked at. Below a chunk that R has, none is: its parts are there, too.
pub fn list(
    kind: Kind,
    hints: &mut Hints,
    now: Instant,
    root: &[u8],
    ends: &[Vec<u32>],
) -> Listing {
    // Chunks of one size: the largest level is no chunk, but what crosses together.
    let ends = if kind == Kind::Src { &ends[ends.len().saturating_sub(1)..] } else { ends };
    let tree = tree(hints, now, root, ends);
    let mut listing = Listing::default();
    let first = 0..tree.first().map_or(0, Vec::len);
    emit(&tree, 0, first, &mut listing);
    // Not before: the chunks of this root are not stored when R looks for them.
    for node in tree.iter().flatten() {
        hints.note(now, node.name);
    }
    listing
}

/// The levels of the tree, as far as they matter.
fn tree(hints: &Hints, now: Instant, root: &[u8], ends: &[Vec<u32>]) -> Vec<Vec<Node>> {
    let mut levels: Vec<Vec<Node>> = Vec::new();
    for (depth, ends) in ends.iter().enumerate() {
        let mut level = match levels.last_mut() {
            None => chunks(0, ends).map(node).collect(),
            Some(parents) => children(parents, ends),
        };
        if level.is_empty() && depth > 0 {
            break;
        }
        let bytes: Vec<_> =
            level.iter().map(|it| &root[it.start as usize..it.end as usize]).collect();
        for (node, name) in level.iter_mut().zip(names_of(&bytes)) {
            node.name = name;
            node.is_hinted = hints.has(now, &name);
            node.has_hinted = node.is_hinted;
        }
        levels.push(level);
    }
    for depth in (1..levels.len()).rev() {
        let (upper, lower) = levels.split_at_mut(depth);
        for parent in &mut upper[depth - 1] {
            let below = &lower[0][parent.children.clone()];
            parent.has_hinted |= below.iter().any(|child| child.has_hinted);
        }
    }
    levels
}

/// The chunks that end here, the first of which begins at `start`.
fn chunks(start: u32, ends: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    ends.iter().scan(start, |start, &end| Some((std::mem::replace(start, end), end)))
}

fn node((start, end): (u32, u32)) -> Node {
    Node { start, end, name: [0; 20], is_hinted: false, has_hinted: false, children: 0..0 }
}

/// The parts of the chunks that R is not believed to have.
fn children(parents: &mut [Node], ends: &[u32]) -> Vec<Node> {
    let mut level = Vec::new();
    for parent in parents.iter_mut().filter(|parent| !parent.is_hinted) {
        let from = ends.partition_point(|end| *end <= parent.start);
        let until = ends.partition_point(|end| *end <= parent.end);
        let first = level.len();
        level.extend(chunks(parent.start, &ends[from..until]).map(node));
        parent.children = first..level.len();
    }
    level
}

fn emit(tree: &[Vec<Node>], depth: usize, nodes: std::ops::Range<usize>, listing: &mut Listing) {
    for node in &tree[depth][nodes] {
        if node.is_hinted || !node.has_hinted {
            let (name, length) = (node.name, node.end - node.start);
            listing.entries.push(Entry { name, length, is_missing: !node.is_hinted });
        } else {
            emit(tree, depth + 1, node.children.clone(), listing);
        }
    }
}
