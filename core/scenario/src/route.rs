//! Static routes: fewest hops, then least delay, then the links that come first in the file.

use crate::scenario::DuplexLink;
use narrows_base::spec::nearest;
use narrows_base::{Duration, SpecError};
use std::collections::BTreeMap;

/// Nodes and the directed links between them. Wire `w` is link `2w` forward and `2w + 1` back.
pub struct Map<'a> {
    nodes: BTreeMap<&'a str, usize>,
    /// Per node: links that leave it, the node that they reach, their delay.
    leaving: Vec<Vec<(u32, usize, Duration)>>,
}

impl<'a> Map<'a> {
    /// A map of these wires.
    pub fn new(wires: &'a [DuplexLink]) -> Map<'a> {
        let mut map = Map { nodes: BTreeMap::new(), leaving: Vec::new() };
        for (w, wire) in wires.iter().enumerate() {
            let a = map.node(&wire.from);
            let b = map.node(&wire.to);
            let link = 2 * w as u32;
            map.leaving[a].push((link, b, wire.forward.delay));
            map.leaving[b].push((link + 1, a, wire.reverse.delay));
        }
        map
    }

    fn node(&mut self, name: &'a str) -> usize {
        let next = self.nodes.len();
        let n = *self.nodes.entry(name).or_insert(next);
        if n == next {
            self.leaving.push(Vec::new());
        }
        n
    }

    fn find(&self, name: &str) -> Result<usize, SpecError> {
        self.nodes.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.nodes.keys().copied().collect();
            match nearest(name, &known) {
                Some(near) => SpecError::new(format!(
                    "no link reaches the node '{name}'; did you mean '{near}'?"
                )),
                None => SpecError::new(format!(
                    "no link reaches the node '{name}'; the nodes are {}",
                    known.join(", ")
                )),
            }
        })
    }

    /// Links from one node to another.
    ///
    /// # Errors
    /// A node that does not exist, or no route between the two.
    pub fn route(&self, from: &str, to: &str) -> Result<Vec<u32>, SpecError> {
        let source = self.find(from)?;
        let goal = self.find(to)?;
        if source == goal {
            return Err(SpecError::new(format!("from and to are the same node, '{from}'")));
        }
        // From both ends at once: beside a hub with thousands of nodes, a route visits few of them.
        let mut ends = [Search::new(self, source), Search::new(self, goal)];
        while ends.iter().all(|e| !e.last().is_empty()) {
            let side = usize::from(ends[0].last().len() > ends[1].last().len());
            let [first, second] = &mut ends;
            let (one, other) = if side == 0 { (first, second) } else { (second, first) };
            one.widen(self);
            if one.last().iter().any(|n| other.hops[*n] != UNSEEN) {
                return Ok(self.best(&ends[0], &ends[1]));
            }
        }
        Err(SpecError::new(format!("there is no route from '{from}' to '{to}'")))
    }

    /// Of all routes with the fewest hops the one with the least delay, and of these the one with the first links of
    /// the file.
    fn best(&self, source: &Search, goal: &Search) -> Vec<u32> {
        // Nodes on such routes, by hops left to the goal, with the least delay from there.
        let total = source.levels.len() + goal.levels.len() - 2;
        let mut left = vec![None; self.leaving.len()];
        let mut costs = vec![Duration::MAX; self.leaving.len()];
        left[goal.levels[0][0]] = Some(0);
        costs[goal.levels[0][0]] = Duration::ZERO;
        for hops_left in 1..=total {
            let level = match goal.levels.get(hops_left) {
                Some(level) => level,
                None => &source.levels[total - hops_left],
            };
            for &node in level {
                let next =
                    self.leaving[node].iter().filter(|(_, n, _)| left[*n] == Some(hops_left - 1));
                if let Some(cost) = next.map(|(_, n, d)| *d + costs[*n]).min() {
                    left[node] = Some(hops_left);
                    costs[node] = cost;
                }
            }
        }
        let mut node = source.levels[0][0];
        let mut route = Vec::with_capacity(total);
        for hops_left in (0..total).rev() {
            let on = |(_, n, d): &&(u32, usize, Duration)| {
                left[*n] == Some(hops_left) && *d + costs[*n] == costs[node]
            };
            let Some(&(link, next, _)) = self.leaving[node].iter().filter(on).min_by_key(|e| e.0)
            else {
                break;
            };
            route.push(link);
            node = next;
        }
        route
    }
}

const UNSEEN: u32 = u32::MAX;

/// Nodes by their distance from one node in hops. Links are duplex, so hops are the same in both directions.
struct Search {
    hops: Vec<u32>,
    levels: Vec<Vec<usize>>,
}

impl Search {
    fn new(map: &Map<'_>, node: usize) -> Search {
        let mut hops = vec![UNSEEN; map.leaving.len()];
        hops[node] = 0;
        Search { hops, levels: vec![vec![node]] }
    }
    fn last(&self) -> &[usize] {
        self.levels.last().map_or(&[], Vec::as_slice)
    }
    /// Extends the search by one hop.
    fn widen(&mut self, map: &Map<'_>) {
        let hops = self.levels.len() as u32;
        let mut level = Vec::new();
        let Search { hops: seen, levels } = self;
        for &node in levels.last().into_iter().flatten() {
            for &(_, next, _) in &map.leaving[node] {
                if seen[next] == UNSEEN {
                    seen[next] = hops;
                    level.push(next);
                }
            }
        }
        self.levels.push(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_direction::{LinkDirection, QueueSize};
    use narrows_base::{RandomKey, Rate};
    use narrows_link::QueueLimit;
    use std::collections::BTreeSet;

    fn wire(from: usize, to: usize, forward_ms: u64, reverse_ms: u64) -> DuplexLink {
        let way = |ms| {
            let delay = Duration::from_millis(ms);
            LinkDirection::new(
                Rate::from_bps(1_000_000),
                delay,
                QueueSize::Fixed(QueueLimit::Unlimited),
            )
        };
        DuplexLink {
            name: String::new(),
            from: format!("n{from}"),
            to: format!("n{to}"),
            forward: way(forward_ms),
            reverse: way(reverse_ms),
            line: 0,
        }
    }

    /// By the definition: the least (hops, delay, links) of all routes, found by trying all.
    fn by_definition(map: &Map<'_>, from: &str, to: &str) -> Option<Vec<u32>> {
        let source = map.nodes[from];
        let goal = map.nodes[to];
        let mut open = BTreeSet::from([(0, Duration::ZERO, Vec::new(), source)]);
        while let Some((hops, delay, path, node)) = open.pop_first() {
            if node == goal {
                return Some(path);
            }
            if hops > map.leaving.len() {
                return None;
            }
            for &(link, next, d) in &map.leaving[node] {
                let mut longer = path.clone();
                longer.push(link);
                open.insert((hops + 1, delay + d, longer, next));
            }
        }
        None
    }

    /// Fewest hops, then least delay, then the first links of the file: in any network, parallel links
    /// and unreachable nodes included.
    #[test]
    fn routes_are_those_of_the_definition() {
        let mut stream = RandomKey::from_seed(3).named("networks").stream();
        let mut below = |n: u64| (stream.bits() % n) as usize;
        let mut found = 0;
        let mut missing = 0;
        for _ in 0..300 {
            let nodes = 2 + below(5) as u64;
            let wires: Vec<DuplexLink> = (0..1 + below(8))
                .map(|_| (below(nodes), below(nodes), below(3) as u64, below(3) as u64))
                .filter(|(a, b, ..)| a != b)
                .map(|(a, b, forward, reverse)| wire(a, b, forward, reverse))
                .collect();
            let map = Map::new(&wires);
            for from in map.nodes.keys() {
                for to in map.nodes.keys().filter(|to| *to != from) {
                    let route = map.route(from, to).ok();
                    let expected = by_definition(&map, from, to);
                    assert_eq!(route, expected, "{from} to {to}");
                    *(if route.is_some() { &mut found } else { &mut missing }) += 1;
                }
            }
        }
        assert!(found > 500 && missing > 50, "{found} {missing}");
    }
}
