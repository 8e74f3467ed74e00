//! Describes a question for the page's controls: link, protocols, work, command and scenario file.

use crate::question::PageQuestion;
use narrows_lab::networks::draw;
use narrows_lab::options::words::command_line;
use narrows_lab::recommendation::Aim;
use narrows_link::QueueLimit;
use narrows_scenario::link_direction::bdp_packets;
use narrows_scenario::trace_convert::{Form, convert};
use narrows_scenario::values::loss_text;
use narrows_scenario::{BottleneckLink, scenario_file};

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Times without a header are in milliseconds, as in Mahimahi's files; rates in Mbit/s.
const UNITS: (&str, &str) = ("ms", "Mbit/s");

/// The question in numbers and in words.
pub fn question(question: &PageQuestion) -> Result<Value, String> {
    let planned = question.plan()?;
    let s = &planned.plan.scenario;
    let given = |name: &str| question.options.iter().find(|o| o.0 == name).map(|o| o.1.as_str());
    let network = given("network").map(draw::find).transpose();
    let network = network.map_err(|e| e.to_string())?;
    let text = match &network {
        Some(network) => &network.question.link,
        None => given("link").unwrap_or(narrows_scenario::links::DEFAULT),
    };
    let link = BottleneckLink::parse(text, Path::new("")).map_err(|e| e.to_string())?;
    Ok(json!({
        "link": numbers(&link, s.packet),
        "path": planned.about.path,
        "protocols": s.protocols.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seeds": s.seeds,
        "seed": s.seed,
        "seconds": s.duration.as_secs_f64(),
        "packets": planned.plan.work(),
        "draws": planned.plan.draws(),
        "usual_seconds": planned.usual.duration.as_secs_f64(),
        "usual_protocols": planned.about.aim.protocols(),
        "command": command_line("compare", &question.options),
        "scenario": scenario_file::text(s),
        "bulk": planned.about.aim == Aim::Bulk,
        // Options for a network of the atlas that the reader changes.
        "similar": network.map(|n| n.similar(given("protocols").unwrap_or_default()).options()),
    }))
}

/// The numbers of the sliders: bit/s, s, packets and the share of lost packets; absent where a slider cannot show it.
fn numbers(link: &BottleneckLink, packet: u32) -> Value {
    let rtt = link.base_rtt();
    let way = &link.forward;
    let bdp = bdp_packets(way.mean_bps(), rtt, packet, 1.0);
    let queue = match way.limit(rtt, packet) {
        QueueLimit::Packets(packets) | QueueLimit::Either { packets, .. } => Some(packets),
        QueueLimit::Bytes(bytes) => Some(bytes.div_ceil(u64::from(packet))),
        QueueLimit::Unlimited => None,
    };
    let percent = loss_text(&way.loss)
        .strip_prefix("uniform(")
        .and_then(|rest| rest.strip_suffix("%)"))
        .and_then(|percent| percent.parse::<f64>().ok());
    let loss = if way.loss.is_empty() { Some(0.0) } else { percent.map(|p| p / 100.0) };
    json!({
        "text": link.to_string(),
        "rate_bps": way.trace.is_none().then(|| way.rate.as_bps() as f64),
        "delay_s": way.delay.as_secs_f64(),
        "rtt_s": rtt.as_secs_f64(),
        "queue_packets": queue,
        "bdp_packets": bdp,
        "loss": loss,
        "aqm": way.aqm.as_ref().map(ToString::to_string),
    })
}

/// The link's text with another value of a key.
pub fn varied(link: &str, key: &str, value: &str) -> Result<Value, String> {
    // The first two have no name in the text.
    let (rate, rest) = link.split_once(',').unwrap_or((link, ""));
    let (delay, more) = rest.split_once(',').unwrap_or((rest, ""));
    let is_spec = BottleneckLink::parse(&format!("{rate},{delay}"), Path::new("")).is_ok();
    let text = match key {
        "rate" if is_spec => joined(&[value, delay, more]),
        "delay" if is_spec => joined(&[rate, value, more]),
        _ => {
            let link = BottleneckLink::parse_with(link, &[(key, value)], Path::new(""));
            link.map_err(|e| e.to_string())?.to_string()
        }
    };
    let link = BottleneckLink::parse(&text, Path::new("")).map_err(|e| e.to_string())?;
    Ok(json!({ "text": text, "canonical": link.to_string() }))
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join(",")
}

/// A record of times or rates as a Mahimahi trace; one that is a Mahimahi trace stays as it is.
pub fn converted(text: &str) -> Result<Value, String> {
    if narrows_link::Trace::parse(text).is_ok() {
        return Ok(json!(text));
    }
    let plain = convert(text, &Form::default());
    let lines = plain.or_else(|first| {
        let form =
            Form { time: Some(UNITS.0.into()), rate: Some(UNITS.1.into()), ..Form::default() };
        convert(text, &form).map_err(|_| first)
    });
    let mut out = String::new();
    for line in lines.map_err(|e| e.to_string())? {
        let _ = writeln!(out, "{line}");
    }
    Ok(json!(out))
}
