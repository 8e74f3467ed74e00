//! Valid and invalid options of `compare`.

use narrows_lab::{Question, collect};
use narrows_scenario::scenario_file;
use narrows_sim::protocol::Preset;
use std::path::Path;

#[test]
fn bad_questions_name_the_flag() {
    let ask = |change: &dyn Fn(&mut Question)| {
        let mut q = Question::default();
        change(&mut q);
        q.scenario(Path::new("")).map(|_| ()).unwrap_err().to_string()
    };
    assert!(ask(&|q| q.protocols = "reno,renoo".into()).starts_with("--protocols: "));
    assert!(ask(&|q| q.protocols = "reno,,sack".into()).contains("missing"));
    assert!(ask(&|q| q.protocols = "reno,reno".into()).contains("twice"));
    assert!(ask(&|q| q.protocols = "vegas(alpah=1)".into()).contains("did you mean 'alpha'"));
    assert!(ask(&|q| q.against = Some("reno:x".into())).starts_with("--against: "));
    assert!(ask(&|q| q.reverse = Some("reno:0".into())).starts_with("--reverse: "));
    assert!(ask(&|q| q.link = "nowhere".into()).starts_with("--link: "));
    assert!(ask(&|q| q.packet = 40).starts_with("--packet: "));
}

/// A comparison simulates today's TCP and saves that preset; a file without a preset keeps its earlier meaning.
#[test]
fn comparison_uses_linux_and_scenario_file_the_rfcs() {
    for (preset, name) in [(None, "linux"), (Some(Preset::Rfc), "rfc"), (Some(Preset::Ns2), "ns2")]
    {
        let usual = Question::default();
        let q = Question { preset: preset.unwrap_or(usual.preset), ..usual };
        let (scenario, _) = q.scenario(Path::new("")).unwrap();
        let text = scenario_file::text(&scenario);
        assert!(text.contains(&format!("preset = \"{name}\"")), "{text}");
        let bare: Vec<&str> = text.lines().filter(|l| !l.starts_with("preset")).collect();
        let bare = scenario_file::parse(&bare.join("\n"), Path::new("")).unwrap();
        assert_eq!(bare.preset, Preset::Rfc);
    }
}

/// Comparisons with the kernel count only in preset `linux`.
#[test]
fn window_validation_depends_on_the_preset() {
    let validated = |name, preset| collect::status(name, preset).starts_with("validated");
    for name in ["cubic", "bbr", "cubic(hystart=off)"] {
        assert!(validated(name, Preset::Linux) && !validated(name, Preset::Rfc), "{name}");
    }
    assert!(!validated("rrtp+cubic", Preset::Linux) && !validated("copa", Preset::Linux));
    assert!(validated("sack", Preset::Rfc), "against ns-2");
}
