//! Valid and invalid links and scenarios.

use narrows_base::{Duration, Rate};
use narrows_link::QueueLimit;
use narrows_scenario::link_direction::QueueSize;
use narrows_scenario::{BottleneckLink, Plan, links, scenario_file};
use proptest::prelude::*;
use std::path::Path;

fn link(text: &str) -> BottleneckLink {
    BottleneckLink::parse(text, Path::new("")).unwrap_or_else(|e| panic!("{text}: {e}"))
}
fn limit(text: &str) -> QueueLimit {
    match link(text).resolved(1000).forward.queue_size {
        QueueSize::Fixed(limit) => limit,
        other => panic!("{other:?} is not resolved"),
    }
}

#[test]
fn a_link_is_rate_delay_and_keys() {
    let l = link("1.5Mbit/s,80ms,queue=30p,loss=ge(g=0.13%,h=12.5%),access=10Mbit/s/0.1ms");
    assert_eq!(l.forward.rate, Rate::from_bps(1_500_000));
    assert_eq!(l.forward.delay, Duration::from_millis(80));
    assert_eq!(l.base_rtt(), Duration::from_micros(160_200));
    assert_eq!(l.forward.loss.len(), 1);
    assert!(l.reverse.loss.is_empty(), "losses strike data's direction unless told otherwise");
    assert_eq!(
        (l.reverse.rate, l.reverse.delay, l.reverse.queue_size),
        (l.forward.rate, l.forward.delay, l.forward.queue_size)
    );
}

#[test]
fn the_other_direction_differs_where_told() {
    let l = link(
        "10Mbit/s,20ms,queue=50p,reverse-rate=1Mbit/s,reverse-delay=30ms,reverse-queue=9kB,reverse-loss=2%",
    );
    assert_eq!(l.reverse.rate, Rate::from_bps(1_000_000));
    assert_eq!(l.base_rtt(), Duration::from_millis(50));
    assert_eq!(l.reverse.queue_size, QueueSize::Fixed(QueueLimit::Bytes(9000)));
    assert_eq!((l.reverse.loss.len(), l.forward.loss.len()), (1, 0));
}

#[test]
fn queues_are_written_with_parameters_as_read() {
    for entry in narrows_link::QUEUES.iter() {
        let descriptor = entry.descriptor;
        let l = link(&format!("10Mbit/s,20ms,queue=50p,aqm={}", descriptor.name));
        assert!(l.to_string().contains(&format!("aqm={}", descriptor.name)), "{l}");
        assert_eq!(link(&l.to_string()).to_string(), l.to_string());
        assert_eq!(l.reverse.aqm, l.forward.aqm, "both directions, unless told otherwise");
    }
    let text = "aqm=red(min=5p,max=15p,max-p=2%,weight=-1,rtt-floor=0s),reverse-aqm=droptail";
    let l = link(&format!("10Mbit/s,20ms,{text}"));
    assert!(l.to_string().contains(text), "{l}");
    // A file is read, written, read and written again.
    let read = |text: &str| scenario_file::parse(text, Path::new(""));
    let file = GOOD.replace("queue = \"10p\"", "queue = \"10p\"\naqm = \"fq-codel(quantum=300B)\"");
    let s = read(&file).unwrap();
    assert_eq!(s.links[0].forward.aqm.as_ref().unwrap().to_string(), "fq-codel(quantum=300B)");
    let written = scenario_file::text(&s);
    assert_eq!(scenario_file::text(&read(&written).unwrap()), written);
    assert!(written.contains("aqm = \"fq-codel(quantum=300B)\""), "{written}");
    let e = read(&file.replace("fq-codel(q", "fq-codl(q")).unwrap_err().to_string();
    assert!(e.contains("line 9: aqm") && e.contains("did you mean 'fq-codel'"), "{e}");
}

#[test]
fn a_product_is_rate_times_base_rtt_rounded_up() {
    let either = |packets, bytes| QueueLimit::Either { packets, bytes };
    assert_eq!(limit("1.5Mbit/s,80ms,queue=1bdp"), either(30, 30_000));
    // Access and egress links count in both directions: 240 000 + 300 bits are more than 30 packets.
    assert_eq!(limit("1.5Mbit/s,80ms,queue=1bdp,access=10Mbit/s/0.1ms"), either(31, 30_038));
    assert_eq!(limit("1.5Mbit/s,80ms,queue=2BDP"), either(60, 60_000));
    assert_eq!(limit("1.5Mbit/s,80ms"), either(30, 30_000));
    assert_eq!(limit("1.5Mbit/s,0s"), either(10, 0));
    assert_eq!(limit("1.5Mbit/s,0s,queue=1bdp"), either(0, 0));
    assert_eq!(limit("1.5Mbit/s,80ms,queue=max(3p,45kB)"), either(3, 45_000));
    // ns-2 counts packets of any size.
    assert_eq!(limit("1.5Mbit/s,80ms,queue=packets(1.1bdp)"), QueueLimit::Packets(33));
    assert_eq!(limit("1.5Mbit/s,0s,queue=packets(1bdp,5p)"), QueueLimit::Packets(5));
    for text in ["packets(1.1bdp)", "packets(2bdp,5p)", "max(3p,45000B)", "max(2bdp,5p)"] {
        let written = link(&format!("1.5Mbit/s,80ms,queue={text}")).to_string();
        assert!(written.contains(&format!("queue={text}")), "{written}");
    }
    for wrong in ["packets(5p)", "packets(1bdp,5kB)", "packets()", "max(45kB,3p)", "max(3p,4p)"] {
        let e = BottleneckLink::parse(&format!("1Mbit/s,1ms,queue={wrong}"), Path::new(""))
            .unwrap_err();
        assert!(e.to_string().contains("packets(1bdp,5p) or unlimited"), "{e}");
    }
    assert_eq!(limit("1.5Mbit/s,80ms,queue=45kB"), QueueLimit::Bytes(45_000));
    assert_eq!(limit("1bit/s,1ns"), either(10, 1));
}

#[test]
fn every_named_link_is_read_and_shown_in_full() {
    for entry in links::LINKS {
        let l = link(entry.descriptor.name);
        let again = link(&l.to_string());
        assert_eq!(again.to_string(), l.to_string(), "{}", entry.descriptor.name);
        assert_eq!(again.base_rtt(), l.base_rtt());
    }
    // A relay has one link per direction, which includes the delays of the others.
    for entry in links::LINKS {
        let l = link(entry.descriptor.name);
        let folded = link(entry.descriptor.name).folded().unwrap();
        assert!(folded.access.is_none() && folded.egress.is_none());
        assert_eq!(folded.base_rtt(), l.base_rtt(), "{}", entry.descriptor.name);
    }
    let narrow = link("2Mbit/s,10ms,egress=1Mbit/s/1ms").folded();
    assert!(narrow.unwrap_err().to_string().contains("egress= must be faster"));
    // Keys after a name replace the link's own.
    assert!(link("geo,queue=7p").to_string().contains("queue=7p"));
}

/// A link with a trace ignores its rate, so a rate that would have no effect is refused.
#[test]
fn a_rate_in_place_of_a_trace_is_refused() {
    for (text, key) in [("lte,rate=20Mbit/s", "rate"), ("leo,reverse-rate=5Mbit/s", "reverse-rate")]
    {
        let e = BottleneckLink::parse(text, Path::new("")).unwrap_err().to_string();
        assert!(e.starts_with(&format!("{key}: the link follows ")) && e.contains("trace="), "{e}");
    }
    let varied = BottleneckLink::parse_with("lte", &[("rate", "20Mbit/s")], Path::new(""));
    assert!(varied.unwrap_err().to_string().contains("give another trace="));
    let own = link("lte,rate=20Mbit/s,trace=cellular(mean=20Mbit/s)");
    assert_eq!((own.forward.mean_bps() / 1e6).round(), 20.0);
}

#[test]
fn ranges_are_drawn_per_flow_and_side_and_repeat() {
    let side = link("1Mbit/s,10ms,access=15Mbit/s/0.5ms..2ms").access.unwrap();
    let a = side.draw(1, "access", "main.0");
    assert_eq!(a, side.draw(1, "access", "main.0"));
    assert_ne!(a, side.draw(1, "egress", "main.0"));
    assert_ne!(a, side.draw(1, "access", "main.1"));
    assert_ne!(a, side.draw(2, "access", "main.0"));
    assert!(a.1 >= Duration::from_micros(500) && a.1 < Duration::from_millis(2));
}

#[test]
fn malformed_links_get_one_line_with_right_form() {
    for (bad, hint) in [
        ("", "RATE,DELAY"),
        ("gao", "did you mean 'geo'"),
        ("1.5Mbit/s", "delay is missing"),
        ("1.5Mbit/s,queue=3p", "delay is missing"),
        ("1.5,80ms", "no unit"),
        ("1.5Mbit/s,80", "80ms or 1.5s"),
        ("0bit/s,80ms", "at least 1bit/s"),
        ("1.5Mbit/s,-80ms", "negative"),
        ("1.5Mbit/s,80ms,queu=30p", "did you mean 'queue'"),
        ("1.5Mbit/s,80ms,queue=30", "30p"),
        ("1.5Mbit/s,80ms,queue=1.5p", "whole number"),
        ("1.5Mbit/s,80ms,queue=-1p", "whole number"),
        ("1.5Mbit/s,80ms,queue=", "no value"),
        ("1.5Mbit/s,80ms,queue=3p,queue=4p", "twice"),
        ("1.5Mbit/s,80ms,loss=101%", "between 0 and 1"),
        ("1.5Mbit/s,80ms,loss=uniforn(1%)", "did you mean 'uniform'"),
        ("1.5Mbit/s,80ms,loss=ge(g=1%", "')' is missing"),
        ("1.5Mbit/s,80ms,aqm=redd", "aqm=redd: unknown queue 'redd'; did you mean 'red'?"),
        ("1.5Mbit/s,80ms,aqm=red(mim=5p)", "did you mean 'min'"),
        ("1.5Mbit/s,80ms,aqm=red(min=15p,max=5p)", "max must be above min"),
        ("1.5Mbit/s,80ms,aqm=codel(target=5)", "no unit"),
        ("1.5Mbit/s,80ms,reverse-aqm=piee", "did you mean 'pie'"),
        ("1.5Mbit/s,80ms,trace=/no/such/file", "no such file"),
        ("1.5Mbit/s,80ms,access=10Mbit/s", "RATE/DELAY"),
        ("1.5Mbit/s,80ms,access=10Mbit/s/2ms..1ms", "backwards"),
        ("1.5Mbit/s,1ms..2ms", "access= or egress="),
        ("1.5Mbit/s,80ms,reorder=1%", "1%/5ms"),
        ("1.5Mbit/s,80ms,reverse-lose=1%", "did you mean 'reverse-loss'"),
        ("1.5Mbit/s,99h99", "unknown unit"),
        ("1.5Mbit/s,1e30s", "ten years"),
        ("1.5Mbit/s,80ms,30p", "not key=value"),
    ] {
        let e = match BottleneckLink::parse(bad, Path::new("")) {
            Err(e) => e.to_string(),
            Ok(l) => panic!("'{bad}' was taken for {l}"),
        };
        assert!(e.contains(hint), "'{bad}': {e}");
        assert!(!e.contains('\n'), "'{bad}': {e}");
    }
}

const GOOD: &str = r#"
duration = "1s"
[[link]]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "10ms"
queue = "10p"
[[link]]
from = "b"
to = "c"
rate = "500kbit/s"
delay = "5ms"
reverse = { loss = "1%" }
[[flows]]
protocol = "reno"
from = "a"
to = "c"
count = 2
source = "transfer(size=20kB)"
[[flows]]
protocol = "cubic"
from = "c"
to = "b"
start = "100ms"
stop = "900ms"
[[change]]
at = "500ms"
link = "b-c"
rate = "2Mbit/s"
loss = "1%"
[[reconfigure]]
at = "500ms"
flows = "reno"
rate = "2Mbit/s"
rtt = "30ms"
loss = "1%"
[probe]
interval = "100ms"
links = ["a-b.back"]
"#;

fn scenario(text: &str) -> Result<Plan, String> {
    let s = scenario_file::parse(text, Path::new("")).map_err(|e| e.to_string())?;
    Plan::new(s).map_err(|e| e.to_string())
}

#[test]
fn a_scenario_has_routes_bottlenecks_and_changes() {
    let plan = scenario(GOOD).unwrap();
    assert_eq!(plan.bottleneck_name(0), "b-c");
    assert_eq!(plan.bottleneck_name(1), "b-c.back");
    let n = plan.network(0, 1, true);
    assert_eq!(n.groups[0].flows[1].forward, [0, 2]);
    assert_eq!(n.groups[0].flows[1].back, [3, 1]);
    assert_eq!(n.groups[1].flows[0].forward, [3]);
    assert!(n.links[2].config.changes && !n.links[0].config.changes);
    assert!(n.links[1].metered, "a probe watches it");
    assert_eq!(n.changes.len(), 2);
    let (at, group, hints) = n.reconfigurations[0];
    assert_eq!((at.as_secs_f64(), group), (0.5, 0));
    assert_eq!(hints.rate, Some(Rate::from_bps(2_000_000)));
    assert_eq!((hints.rtt, hints.loss), (Some(Duration::from_millis(30)), Some(0.01)));
}

#[test]
fn a_saved_scenario_reads_back_to_the_same_file() {
    let first = scenario_file::parse(GOOD, Path::new("")).unwrap();
    let text = scenario_file::text(&first);
    let again =
        scenario_file::parse(&text, Path::new("")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(scenario_file::text(&again), text);
    assert_eq!(again.reconfigurations[0].hints, first.reconfigurations[0].hints);
}

#[test]
fn malformed_scenarios_get_the_line_and_right_form() {
    for (from, to, hint) in [
        ("queue = \"10p\"", "queu = \"10p\"", "line 8: unknown key 'queu'; did you mean 'queue'?"),
        ("queue = \"10p\"", "queue = 10", "line 8"),
        ("queue = \"10p\"", "queue = \"10\"", "line 8: queue: '10' has no unit"),
        ("rate = \"1Mbit/s\"", "rate = \"1Mbit/x\"", "line 6: rate"),
        ("rate = \"1Mbit/s\"\n", "", "rate"),
        ("protocol = \"reno\"", "protocol = \"renno\"", "did you mean 'reno'"),
        ("protocol = \"reno\"", "protocol = \"each\"", "protocols = "),
        ("to = \"c\"\ncount", "to = \"d\"\ncount", "line 15: no link reaches the node 'd'"),
        ("count = 2", "count = 0", "line 19: count = 0 must be between"),
        ("count = 2", "count = -2", "must be between"),
        ("link = \"b-c\"", "link = \"b-d\"", "line 27: unknown link 'b-d'; did you mean"),
        ("at = \"500ms\"", "at = \"5s\"", "after the end"),
        (
            "rate = \"500kbit/s\"",
            "rate = \"500kbit/s\"\ntrace = \"cellular\"",
            "link 'b-c' follows a trace, so its rate cannot be changed",
        ),
        ("stop = \"900ms\"", "stop = \"50ms\"", "before it starts"),
        ("duration = \"1s\"", "duration = \"0s\"", "longer than 0s"),
        ("duration = \"1s\"", "duration = \"1s\"\nwarmup = \"1s\"", "warm-up"),
        ("duration = \"1s\"", "duration = \"1s\"\npreset = \"ns\"", "did you mean 'ns2'"),
        ("duration = \"1s\"", "duration = \"1s", "line 2"),
        (
            "flows = \"reno\"",
            "flows = \"rena\"",
            "line 32: unknown group of flows 'rena'; did you mean",
        ),
        (
            "rate = \"2Mbit/s\"\nrtt = \"30ms\"\nloss = \"1%\"\n",
            "",
            "line 32: this reconfigures nothing",
        ),
        ("rtt = \"30ms\"", "rtt = \"30\"", "rtt: '30' has no unit"),
        ("interval = \"100ms\"", "interval = \"1ns\"", "million samples"),
        ("links = [\"a-b.back\"]", "links = [\"a-b.bakc\"]", "did you mean 'a-b.back'"),
        (
            "[[link]]\nfrom = \"b\"",
            "[[lnk]]\nfrom = \"b\"",
            "unknown key 'lnk'; did you mean 'link'?",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let bad = GOOD.replacen(from, to, 1);
        let e = scenario(&bad).err().unwrap_or_else(|| panic!("taken: {to}"));
        assert!(e.contains(hint), "{to}: {e}");
        assert!(!e.contains('\n'), "{to}: {e}");
    }
    assert!(scenario("").unwrap_err().contains("no flows"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_link_makes_the_parser_panic(text in ".{0,60}") {
        let _ = BottleneckLink::parse(&text, Path::new("/nonexistent"));
    }
    #[test]
    fn no_keys_make_the_parser_panic(
        key in "(queue|loss|aqm|access|egress|jitter|reorder|reverse-rate|reverse-queue|duplicate)",
        value in "[-0-9a-zA-Z.,()=/%+]{0,24}",
    ) {
        if let Ok(l) = BottleneckLink::parse(&format!("1Mbit/s,10ms,{key}={value}"), Path::new("/nonexistent")) {
            let l = l.resolved(1000);
            // The text of a valid link is valid and equal.
            prop_assert_eq!(link(&l.to_string()).to_string(), l.to_string());
        }
    }
    #[test]
    fn no_scenario_makes_the_reader_panic(text in "[\\[\\]a-z\"= \n.0-9]{0,80}") {
        let _ = scenario(&text);
        let _ = scenario(&format!("{GOOD}\n{text}"));
    }
}

#[test]
fn a_number_where_text_with_a_unit_belongs_is_explained() {
    for text in ["duration = 5", "warmup = 0.5"] {
        let e = scenario_file::parse(text, Path::new("")).unwrap_err().to_string();
        assert!(e.starts_with("line 1: values with units are text"), "{e}");
    }
}

/// A scenario of twenty thousand links is read and planned, and errors have lines. No step is quadratic in them, or
/// this test would take minutes.
#[test]
fn twenty_thousand_links_are_planned() {
    let mut text = String::from("duration = \"1s\"\n");
    for i in 0..20_000 {
        let link = format!("name = \"l{i}\"\nfrom = \"hub\"\nto = \"n{i}\"\nrate = \"1Mbit/s\"\n");
        text += &format!("[[link]]\n{link}delay = \"1ms\"\n");
    }
    for i in 0..200 {
        let ends = format!("from = \"n{i}\"\nto = \"n{}\"\n", 19_999 - i);
        text += &format!("[[flows]]\nname = \"f{i}\"\nprotocol = \"reno\"\n{ends}");
    }
    let scenario = scenario_file::parse(&text, Path::new("")).unwrap();
    let network = Plan::new(scenario).unwrap().network(0, 1, false);
    assert_eq!((network.links.len(), network.groups.len()), (40_000, 200));
    assert_eq!(network.groups[3].flows[0].forward, [7, 2 * 19_996]);
    let last = text.lines().count();
    text += "start = \"soon\"\n";
    let e = scenario_file::parse(&text, Path::new("")).unwrap_err().to_string();
    assert!(e.starts_with(&format!("line {}: start", last + 1)), "{e}");
}

/// A file that is named by mistake may hold secrets: an error gives the position, not the contents.
#[test]
fn errors_of_foreign_files_do_not_show_their_lines() {
    let folder = std::env::temp_dir().join(format!("narrows-secrets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("secrets");
    for secret in [
        "root:$y$j9T$hunter2:19000:0:99999:7:::\n",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n",
        "PASSWORD=hunter2\n",
        "password = 'hunter2'\n",
        "{\"password\": \"hunter2\"}\n",
        "hunter2\n",
        "machine example.org login me password hunter2\n",
        "seed = 1\n hunter2 5\n",
    ] {
        std::fs::write(&file, secret).unwrap();
        let trace = format!("1Mbit/s,1ms,trace={}", file.display());
        for e in [
            scenario_file::load(&file).unwrap_err(),
            scenario_file::Template::load(&file).err().unwrap(),
            narrows_scenario::user_links::read(&file).err().unwrap_or_else(|| {
                // `password = 'hunter2'` has the form of a named link, but it is invalid when used.
                BottleneckLink::parse("hunter", Path::new("")).unwrap_err()
            }),
            BottleneckLink::parse(&trace, Path::new("")).unwrap_err(),
        ] {
            let e = e.to_string();
            assert!(!e.contains("hunter2") && e.lines().count() == 1, "{secret}: {e}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Memory is bounded before the file is read.
#[test]
fn a_scenario_that_is_too_long_is_refused() {
    let long = format!("{}\n{GOOD}", "#".repeat(4_000_000));
    let e = scenario_file::parse(&long, Path::new("")).unwrap_err();
    assert!(e.to_string().contains("longer than 4 MB"));
    assert!(scenario_file::Template::parse(&long, Path::new("")).is_err());
}

/// Two nodes joined by two links, and a flow over these paths.
fn two_paths(protocol: &str, paths: &str) -> Result<Plan, String> {
    let text = format!(
        r#"
[[link]]
name = "dsl"
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"

[[link]]
name = "lte"
from = "b"
to = "a"
rate = "20Mbit/s"
delay = "30ms"

[[flows]]
protocol = "{protocol}"
from = "a"
to = "b"
host-delay = "1ms"
paths = {paths}
"#
    );
    let read = |text: &str| scenario_file::parse(text, Path::new("")).map_err(|e| e.to_string());
    let scenario = read(&text)?;
    let again = read(&scenario_file::text(&scenario))?;
    assert_eq!(again.flows[0].paths, scenario.flows[0].paths);
    Plan::new(scenario).map_err(|e| e.to_string())
}

#[test]
fn flow_with_two_named_paths_has_both_routes() {
    let plan = two_paths("rrtp", r#"[["dsl"], ["lte.back"]]"#).unwrap();
    let network = plan.network(0, 1, false);
    let flow = &network.groups[0].flows[0];
    assert_eq!((flow.forward.last(), &flow.back), (Some(&0), &vec![1]));
    assert_eq!((flow.further[0].forward.last(), &flow.further[0].back), (Some(&3), &vec![2]));
    assert_eq!(flow.further[0].forward.len(), 2, "each path has a host's delay of its own");
}

#[test]
fn path_that_does_not_join_its_ends_is_refused() {
    let refused = |protocol, paths| two_paths(protocol, paths).unwrap_err();
    let wrong = refused("rrtp", r#"[["dsl"], ["lte"]]"#);
    assert!(wrong.contains("begins at 'b', not at 'a'"), "{wrong}");
    let unknown = refused("rrtp", r#"[["dsl"], ["lt.back"]]"#);
    assert!(unknown.contains("lte.back"), "{unknown}");
    let short = refused("rrtp", r#"[["dsl"], []]"#);
    assert!(short.contains("ends at 'a', not at 'b'"), "{short}");
    let tcp = refused("cubic", r#"[["dsl"], ["lte.back"]]"#);
    assert!(tcp.contains("cubic has one path"), "{tcp}");
}
