//! Requests of the page and their answers. A request is a name, a line feed, and its arguments as JSON.

use crate::lens::LensWants;
use crate::question::{PageQuestion, untimed};
use crate::{answer, choices, described, lens, own, preview, stored};
use narrows_lab::execute::execute_one;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Arguments of a request. A request reads its own; the others stay at their defaults.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    question: PageQuestion,
    /// One protocol with one seed, both counted from 0.
    variant: usize,
    seed: usize,
    /// Finished runs, by protocol and seed.
    runs: Vec<Vec<Option<String>>>,
    trials: bool,
    /// Packets of a first look.
    packets: f64,
    /// One protocol under a lens.
    wants: LensWants,
    /// A link, and another value of one of its keys.
    link: String,
    key: String,
    value: String,
}

/// Answers a request: `{"ok": …}`, or `{"error": "one line"}`.
pub fn handle(request: &str) -> String {
    let (name, arguments) = request.split_once('\n').unwrap_or((request, ""));
    let done = match name {
        "choices" => text(&choices::all()),
        // The question's link, protocols and work.
        "describe" => read(arguments).and_then(|q: PageQuestion| text(&described::question(&q)?)),
        "vary" => read(arguments)
            .and_then(|a: Arguments| text(&described::varied(&a.link, &a.key, &a.value)?)),
        // Another record as a Mahimahi trace.
        "convert" => {
            read(arguments).and_then(|record: String| text(&described::converted(&record)?))
        }
        "run" => read(arguments).and_then(|a: Arguments| {
            let planned = a.question.plan()?;
            let run = execute_one(&planned.plan, &untimed(), a.variant, a.seed)?;
            text(&stored::text(&run))
        }),
        "preview" => read(arguments)
            .and_then(|a: Arguments| text(&preview::first_look(&a.question, a.packets)?)),
        "answer" => read(arguments)
            .and_then(|a: Arguments| text(&answer::report(&a.question, &a.runs, a.trials)?)),
        "lens" => {
            read(arguments).and_then(|a: Arguments| text(&lens::frame(&a.question, &a.wants)?))
        }
        "lend" => read(arguments).and_then(|class: own::OwnClass| text(&own::lend(&class)?)),
        _ => Err(format!("unknown request '{}'", name.escape_debug())),
    };
    match done {
        Ok(value) => format!("{{\"ok\":{value}}}"),
        Err(line) => json!({ "error": line }).to_string(),
    }
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|e| format!("the request is malformed: {e}"))
}

fn text<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_lab::collect::collect;
    use narrows_lab::execute::execute;
    use narrows_report::html;
    use serde_json::Value;

    fn question() -> Value {
        let options = [
            ["link", "3Mbit/s,20ms,loss=1%"],
            ["protocols", "cubic,rrtp+reno(scheduler=minrtt,coupling=lia)"],
            ["duration", "5s"],
            ["seeds", "3"],
        ];
        json!({ "options": options })
    }

    fn ok(name: &str, arguments: &Value) -> Value {
        let answer: Value = serde_json::from_str(&handle(&format!("{name}\n{arguments}"))).unwrap();
        assert!(answer["error"].is_null(), "{name}: {answer}");
        answer["ok"].clone()
    }

    fn error(request: &str) -> String {
        let answer: Value = serde_json::from_str(&handle(request)).unwrap();
        answer["error"].as_str().unwrap_or_default().to_string()
    }

    /// Runs that crossed from other workers make the report that `compare` makes.
    #[test]
    fn runs_as_text_make_the_commands_report() {
        let run = |variant: usize, seed: usize| {
            ok("run", &json!({ "question": question(), "variant": variant, "seed": seed }))
        };
        let runs: Vec<Vec<Value>> =
            (0..2).map(|variant| (0..3).map(|seed| run(variant, seed)).collect()).collect();
        let request = json!({ "question": question(), "runs": runs, "trials": true });
        let report = ok("answer", &request);
        let asked: PageQuestion = serde_json::from_value(question()).unwrap();
        let planned = asked.plan().unwrap();
        let control = untimed();
        let runs = execute(&planned.plan, &control).unwrap();
        let outcome = collect(&planned.plan, planned.about, &runs, Some(&control));
        let parts = html::parts(&outcome);
        assert_eq!(report["answer"], parts.answer);
        assert_eq!(report["comparison"], parts.comparison);
        assert_eq!(report["data"], parts.data);
        let digests: Vec<String> =
            outcome.results.iter().map(|r| format!("{:016x}", r.digest)).collect();
        assert_eq!(report["digests"], json!(digests));
        assert_eq!(
            ok("describe", &question())["command"],
            "narrows compare --link 3Mbit/s,20ms,loss=1% \
             --protocols 'cubic,rrtp+reno(scheduler=minrtt,coupling=lia)' --duration 5s --seeds 3"
        );
    }

    /// A first look simulates about the given packets of a long question, and leaves out a short one.
    #[test]
    fn first_look_is_bounded_by_its_packets() {
        let look =
            |packets: f64| ok("preview", &json!({ "question": question(), "packets": packets }));
        // 5 s of 3 Mbit/s are 1250 packets of 1500 bytes for each of the two protocols.
        let first = look(500.0);
        let first_s = first["first_s"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&first_s), "{first_s}");
        let mut asked = question();
        asked["first_s"] = json!(first_s);
        let run = ok("run", &json!({ "question": asked, "variant": 1, "seed": 1 }));
        assert_eq!(first["runs"][1], run);
        assert_eq!(first["runs"].as_array().unwrap().len(), 2);
        assert!(look(5000.0)["first_s"].is_null());
        // Half a second at least.
        assert_eq!(look(1.0)["first_s"], 0.5);
    }

    #[test]
    fn varied_key_changes_the_link_alone() {
        let vary = |link: &str, key: &str, value: &str| {
            ok("vary", &json!({ "link": link, "key": key, "value": value }))["text"].clone()
        };
        assert_eq!(vary("5Mbit/s,20ms,loss=1%", "rate", "7Mbit/s"), "7Mbit/s,20ms,loss=1%");
        assert_eq!(vary("5Mbit/s,20ms", "delay", "9ms"), "5Mbit/s,9ms");
        let geo = vary("geo", "loss", "2%");
        assert!(geo.as_str().unwrap().contains("loss=2%"), "{geo}");
        let link = json!({ "options": [["link", geo]] });
        assert_eq!(ok("describe", &link)["link"]["loss"], 0.02);
    }

    #[test]
    fn impossible_requests_have_errors_of_one_line() {
        let asks = |name: &str, options: &[[&str; 2]]| {
            error(&format!("{name}\n{}", json!({ "options": options })))
        };
        for (options, expected) in [
            ([["link", "5Mbit/s"]], "the delay is missing"),
            ([["link", "1Gbit/s,1ms,trace=/etc/passwd"]], "trace"),
            ([["flows", "9999999"]], "--flows: a number from 1 to 2000 is expected"),
            ([["duration", "9000h"]], "million packets"),
            ([["seeds", "0"]], "--seeds: a number from 1 to 100"),
            ([["preset", "x\ny"]], "--preset"),
            ([["out", "/tmp"]], "the page does not have this option"),
            (
                [["network", "mixes/1/1e9"]],
                "--network: there is no network 'mixes/1/1e9': PART/SEED",
            ),
            ([["network", "pairs/1/0 nan(inf)"]], "unknown"),
        ] {
            let line = asks("describe", &options);
            assert!(line.contains(expected) && !line.contains('\n'), "{options:?}: {line:?}");
        }
        for request in ["", "run", "run\n{", "answer\n{\"runs\":[]}", "eval\n1", "lens\nnull"] {
            assert!(!error(request).is_empty(), "{request:?}");
        }
        let runs =
            json!({ "question": question(), "runs": [["1,2,ffffffffffff"], []], "trials": false });
        assert_eq!(error(&format!("answer\n{runs}")), "a run is malformed");
        let run = json!({ "question": question(), "variant": 7, "seed": 0 });
        assert!(error(&format!("run\n{run}")).contains("variant"));
    }

    /// The network of a mix has what options cannot say; its similar question has the same link and flows.
    #[test]
    fn network_of_atlas_is_described_by_similar_options() {
        let asked = json!({ "options": [["network", "mixes/1/2"], ["protocols", "cubic"]] });
        let described = ok("describe", &asked);
        assert!(described["path"].as_str().unwrap().starts_with("mixes/1/2: "), "{described}");
        let similar: Vec<[String; 2]> =
            serde_json::from_value(described["similar"].clone()).unwrap();
        let again = ok("describe", &json!({ "options": similar }));
        assert_eq!(again["link"], described["link"]);
        assert_eq!(again["seconds"], described["seconds"]);
        assert_eq!(again["seed"], described["seed"]);
        assert!(again["similar"].is_null());
    }

    #[test]
    fn records_become_traces_that_a_link_follows() {
        let csv = "time_s,rate_Mbit/s\n0,2\n1,4\n2,2\n";
        let trace = ok("convert", &json!(csv));
        assert_eq!(ok("convert", &trace), trace, "a trace stays as it is");
        let link = json!({
            "options": [["link", "1Mbit/s,20ms,trace=drive.csv"]],
            "files": { "drive.csv": trace },
        });
        assert!(ok("describe", &link)["path"].as_str().unwrap().contains("(trace)"));
    }
}
