use super::*;
use crate::feed::{Feed, RunDescription};
use narrows_scenario::{BottleneckLink, Plan};
use proptest::prelude::*;

/// A link that records its changes.
#[derive(Debug, Default)]
struct Noted {
    now: Mutex<Duration>,
    changes: Mutex<Vec<(Duration, usize, String)>>,
}

impl ChangingLink for Noted {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }
    fn change(&self, at: Duration, direction: usize, change: LinkChange) {
        self.changes.lock().unwrap().push((at, direction, format!("{change:?}")));
    }
}

fn controls() -> (Arc<Noted>, LinkControls) {
    let about =
        RunDescription { name: "relay".into(), detail: String::new(), real: true, end_s: None };
    let run = Feed::new("test").begin(about).unwrap();
    let link =
        BottleneckLink::parse("20Mbit/s,25ms,loss=1%", Path::new("")).unwrap().folded().unwrap();
    let noted = Arc::new(Noted::default());
    let begun = [link.forward, link.reverse];
    (noted.clone(), LinkControls::new(noted, run, begun))
}

fn order(direction: usize, set: &str, value: &str) -> Result<PageCommand, String> {
    PageCommand::read(
        json!({ "direction": direction, "set": set, "value": value }).to_string().as_bytes(),
    )
}

/// Manual changes of a real link become a scenario with the same changes at the same times, which the simulator runs.
#[test]
fn changes_by_hand_become_a_scenario_that_runs() {
    let (noted, controls) = controls();
    for (seconds, direction, set, value) in [
        (1, 0, "rate", "5Mbit/s"),
        (2, 1, "delay", "80ms"),
        (3, 0, "loss", "ge(g=1%,h=20%)"),
        (4, 0, "outage", "500ms"),
    ] {
        *noted.now.lock().unwrap() = Duration::from_secs(seconds);
        controls.apply(&order(direction, set, value).unwrap()).unwrap();
    }
    *noted.now.lock().unwrap() = Duration::from_secs(6);
    let applied = noted.changes.lock().unwrap().clone();
    let times: Vec<f64> = applied.iter().map(|c| c.0.as_secs_f64()).collect();
    assert_eq!(times, [1.0, 2.0, 3.0, 4.0, 4.5], "an outage ends by itself");
    assert!(applied[4].2.contains("ge"), "with the loss that was before: {}", applied[4].2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.toml");
    std::fs::write(&path, controls.scenario()).unwrap();
    let scenario = scenario_file::load(&path).unwrap();
    assert_eq!(scenario.duration, Duration::from_secs(6));
    let again: Vec<(f64, usize, String)> = (scenario.changes.iter())
        .map(|c| {
            (c.at.as_secs_f64(), usize::from(c.link.ends_with("back")), format!("{:?}", c.change))
        })
        .collect();
    let same: Vec<_> = applied.iter().map(|c| (c.0.as_secs_f64(), c.1, c.2.clone())).collect();
    assert_eq!(again, same);
    assert_eq!(scenario.links[0].forward.loss.len(), 1, "as it began");
    let plan = Plan::new(scenario).unwrap();
    let run = narrows_sim::run(&plan.network(0, 1, false), &mut |_| true).unwrap();
    assert!(run.delivered_packets > 100);
}

/// A value out of range changes no setting, and the one-line error has the permitted values.
#[test]
fn impossible_values_are_refused_and_settings_stay() {
    let (noted, controls) = controls();
    for (set, value) in [
        ("rate", "0"),
        ("rate", "5"),
        ("rate", "1bit/s"),
        ("rate", "900Gbit/s"),
        ("delay", "-1ms"),
        ("delay", "2h"),
        ("loss", "101%"),
        ("loss", "fog"),
        ("outage", "0s"),
        ("outage", "1h"),
    ] {
        let why = controls.apply(&order(0, set, value).unwrap()).unwrap_err();
        assert!(why.starts_with(set) && !why.contains('\n'), "{set} {value}: {why}");
    }
    let third = controls.apply(&order(2, "rate", "1Mbit/s").unwrap()).unwrap_err();
    assert!(third.starts_with("direction"));
    assert!(noted.changes.lock().unwrap().is_empty());
    assert_eq!(controls.state(None).0, 0);
}

/// A loss that is set during an outage applies after its end, also in the scenario.
#[test]
fn an_outage_is_not_ended_by_the_loss_slider() {
    let (noted, controls) = controls();
    controls.apply(&order(0, "outage", "2s").unwrap()).unwrap();
    *noted.now.lock().unwrap() = Duration::from_secs(1);
    controls.apply(&order(0, "loss", "3%").unwrap()).unwrap();
    let last = noted.changes.lock().unwrap().last().unwrap().clone();
    assert_eq!(last.0, Duration::from_secs(2));
    assert!(last.2.contains("3%"), "{}", last.2);
    assert!(controls.apply(&order(0, "outage", "2s").unwrap()).is_err(), "out already");
    let text = controls.scenario();
    assert_eq!(
        text.matches("[[change]]").count() + text.matches("[[changes]]").count(),
        2,
        "{text}"
    );
}

proptest! {
    /// Any bytes parse as a command or return a one-line error; any command is applied or refused in one line.
    #[test]
    fn any_body_is_an_order_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(why) = PageCommand::read(&bytes) {
            prop_assert!(!why.contains('\n'));
        }
    }

    #[test]
    fn any_value_is_applied_or_refused(set in 0..4usize, value in "[ -~]{0,30}") {
        let (_, controls) = controls();
        let order = order(0, ["rate", "delay", "loss", "outage"][set], &value).unwrap();
        if let Err(why) = controls.apply(&order) {
            prop_assert!(!why.contains('\n'), "{why}");
        }
    }
}
