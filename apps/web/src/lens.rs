//! One protocol under a lens: the live page's data of its first seed.

use crate::question::{PageQuestion, untimed};
use narrows_base::{Spec, Time};
use narrows_lab::execute::execute_observed;
use narrows_live::feed::Feed;
use narrows_live::feed::frame::{FeedCursor, Wants};
use narrows_live::simulation::Simulations;
use narrows_scenario::Plan;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;

/// Selection of the lens.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LensWants {
    protocol: String,
    seed: u64,
    /// Flows with samples.
    flows: Vec<usize>,
    /// The flow with single packets.
    packets: Option<usize>,
    /// Time of the shown packets, in microseconds; the whole run if absent.
    window: Option<(f64, f64)>,
}

/// The last observed run, with its question.
struct Observed {
    question: PageQuestion,
    wants: LensWants,
    feed: Arc<Feed>,
}

thread_local! {
    static LAST: RefCell<Option<Observed>> = const { RefCell::new(None) };
}

/// The live page's frame, as text.
pub fn frame(question: &PageQuestion, wants: &LensWants) -> Result<Value, String> {
    let kept = LAST.with_borrow(|last| {
        let last = last.as_ref()?;
        let same = last.question == *question
            && last.wants.protocol == wants.protocol
            && last.wants.seed == wants.seed
            && last.wants.window == wants.window;
        same.then(|| last.feed.clone())
    });
    let feed = match kept {
        Some(feed) => feed,
        None => {
            let feed = observed(question, wants)?;
            let last =
                Observed { question: question.clone(), wants: wants.clone(), feed: feed.clone() };
            LAST.set(Some(last));
            feed
        }
    };
    let run = feed.runs().first().map(|r| r.id);
    let wants = Wants { run, flows: Some(wants.flows.clone()), packets: wants.packets };
    Ok(json!(FeedCursor::new(wants).frame(&feed)))
}

fn observed(question: &PageQuestion, wants: &LensWants) -> Result<Arc<Feed>, String> {
    let planned = question.plan()?;
    let mut scenario = planned.plan.scenario;
    scenario.seed = wants.seed;
    scenario.seeds = 1;
    scenario.protocols = vec![Spec::parse(&wants.protocol).map_err(|e| e.to_string())?];
    let plan = Plan::new(scenario).map_err(|e| e.to_string())?;
    let feed = Feed::new(format!("narrows {}", wants.protocol));
    let detail = format!("{}, seed {}", planned.about.link, wants.seed);
    let mut observer = Simulations::new(&feed, &plan, &detail, None);
    if let Some((from, until)) = wants.window {
        let time = |us: f64| Time::from_secs_f64(us.clamp(0.0, 1e15) * 1e-6);
        observer = observer.with_packets_of(time(from)..time(until));
    }
    let runs = execute_observed(&plan, &untimed(), Some(&observer))?;
    match runs.iter().flatten().flatten().next() {
        Some(_) => Ok(feed),
        None => Err("the run did not end".into()),
    }
}
