//! `narrows link --live`: emulated links on a page.

use crate::failure::Failure;
use crate::live::{LiveArgs, serve, shown};
use crate::relay::describe;
use narrows_base::Time;
use narrows_emulator::{EmulatedLink, LinkObserver, LinkOptions};
use narrows_link::LinkChange;
use narrows_live::controls::Controls;
use narrows_live::feed::Feed;
use narrows_live::link::{LinkLive, RunningLink};
use narrows_live::metrics::link::LinkCounters;
use narrows_live::{BoundPage, LivePage};
use narrows_net::relay::{RelaySnapshot, RelayStats};
use narrows_scenario::link_direction::LinkDirection;
use std::sync::Arc;

/// A link for pages and metrics.
#[derive(Debug)]
pub struct PageLink(pub LinkObserver);

impl LinkCounters for PageLink {
    fn counters(&self) -> (RelayStats, [usize; 2]) {
        self.0.counters()
    }
}

impl RunningLink for PageLink {
    fn look(&self) -> RelaySnapshot {
        self.0.look()
    }
    fn is_over(&self) -> bool {
        self.0.is_over()
    }
    fn now(&self) -> Time {
        self.0.clock().now()
    }
    fn change(&self, at: Time, direction: usize, change: LinkChange) {
        self.0.change(at, direction, change);
    }
}

/// A page of links. Its address is bound before this process enters any namespace. Its threads start after the
/// namespaces are made, since only a single-threaded process can make them.
pub struct LinkPage {
    page: BoundPage,
    feed: Arc<Feed>,
    links: Vec<Arc<LinkLive>>,
    controls: Vec<Arc<dyn Controls>>,
}

impl LinkPage {
    /// Binds the page's address, if `--live` is set.
    pub fn bind(wanted: &LiveArgs) -> Result<Option<LinkPage>, Failure> {
        let (Some(page), Some(feed)) = (wanted.bind()?, wanted.feed()) else { return Ok(None) };
        Ok(Some(LinkPage { page, feed, links: Vec::new(), controls: Vec::new() }))
    }

    /// Adds a link that will be made, in this order.
    pub fn add(
        &mut self,
        name: &str,
        options: &mut LinkOptions,
        [forward, reverse]: [&LinkDirection; 2],
    ) {
        options.forward.changes = true;
        options.reverse.changes = true;
        let detail = format!("there {}; back {}", describe(forward), describe(reverse));
        if let Some((live, controls)) = shown(&self.feed, name, &detail, [forward, reverse]) {
            self.links.push(live);
            self.controls.push(controls);
        }
    }

    /// Opens the page when the links run. With several links, the page cannot change them.
    pub fn open(mut self, links: &[(&str, &EmulatedLink)]) -> Result<LivePage, Failure> {
        for (live, (_, link)) in self.links.iter().zip(links) {
            live.watch(Arc::new(PageLink(link.observer())));
        }
        let controls = self.controls.pop().filter(|_| self.controls.is_empty());
        serve(self.page, &self.feed, controls)
    }
}
