//! The lists that the page offers.

use crate::own;
use narrows_congestion::CONTROLLERS;
use narrows_lab::recommendation::AIMS;
use narrows_report::palette::{DARK, LIGHT};
use narrows_scenario::links::{DEFAULT, LINKS};
use narrows_sim::protocol::named;
use serde_json::{Value, json};

/// All lists.
pub fn all() -> Value {
    let summary =
        |controller: &str| CONTROLLERS.find(controller).map_or("", |e| e.descriptor.summary);
    let protocols = named().filter(|p| !p.is_printed()).map(|p| {
        let says = if p.summary.is_empty() { summary(p.controller) } else { p.summary };
        json!({ "name": p.name, "says": says, "family": format!("{:?}", p.family).to_lowercase() })
    });
    let links = LINKS.iter().map(
        |l| json!({ "name": l.descriptor.name, "says": l.descriptor.summary, "spec": l.spec }),
    );
    let aims = AIMS.iter().map(|(name, aim)| json!({ "name": name, "protocols": aim.protocols() }));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "link": DEFAULT,
        "links": links.collect::<Vec<_>>(),
        "protocols": protocols.collect::<Vec<_>>(),
        "aims": aims.collect::<Vec<_>>(),
        "events": own::events(),
        "light": LIGHT,
        "dark": DARK,
    })
}
