//! Static routes: fewest hops, then least delay, then the links that come first in the file.

use crate::scenario::Wire;
use narrows_base::spec::nearest;
use narrows_base::{Duration, SpecError};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes and the directed links between them. Wire `w` is link `2w` there and `2w + 1` back.
pub struct Map<'a> {
    nodes: BTreeMap<&'a str, usize>,
    /// Per node: links that leave it, the node that they reach, their delay.
    leaving: Vec<Vec<(u32, usize, Duration)>>,
}

impl<'a> Map<'a> {
    /// Of these wires.
    pub fn new(wires: &'a [Wire]) -> Map<'a> {
        let mut map = Map { nodes: BTreeMap::new(), leaving: Vec::new() };
        for (w, wire) in wires.iter().enumerate() {
            let (a, b) = (map.node(&wire.from), map.node(&wire.to));
            let link = 2 * w as u32;
            map.leaving[a].push((link, b, wire.there.delay));
            map.leaving[b].push((link + 1, a, wire.back.delay));
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
                    "no link reaches the node '{name}'; there is {}",
                    known.join(", ")
                )),
            }
        })
    }

    /// Links from one node to another.
    ///
    /// # Errors
    /// A node that does not exist, or no way between the two.
    pub fn route(&self, from: &str, to: &str) -> Result<Vec<u32>, SpecError> {
        let (source, goal) = (self.find(from)?, self.find(to)?);
        if source == goal {
            return Err(SpecError::new(format!("from and to are the same node, '{from}'")));
        }
        // Dijkstra over (hops, delay, links so far): the last part makes ties deterministic.
        let mut done = vec![false; self.leaving.len()];
        let mut open = BTreeSet::from([(0usize, Duration::ZERO, Vec::<u32>::new(), source)]);
        while let Some((hops, delay, path, node)) = open.pop_first() {
            if node == goal {
                return Ok(path);
            }
            if std::mem::replace(&mut done[node], true) {
                continue;
            }
            for &(link, next, d) in &self.leaving[node] {
                if !done[next] {
                    let mut longer = path.clone();
                    longer.push(link);
                    open.insert((hops + 1, delay + d, longer, next));
                }
            }
        }
        Err(SpecError::new(format!("there is no way from '{from}' to '{to}'")))
    }
}
