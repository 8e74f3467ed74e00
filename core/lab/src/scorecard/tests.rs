use super::*;

fn scorecard(protocol: &str, section: &str) -> Scorecard {
    Scorecard { protocol: protocol.into(), seeds: 3, seed: 1, section: Some(section.into()) }
}

fn measure(scorecard: &Scorecard) -> Vec<ScorecardRow> {
    let control = RunControl::quiet(2);
    scorecard.measure(&control).unwrap().unwrap()
}

/// Every criterion belongs to a listed section, every section has one, and every scenario can be built.
#[test]
fn every_section_has_a_criterion_that_can_be_run() {
    let criteria = networks::all().unwrap();
    for (number, title) in SECTIONS {
        assert!(criteria.iter().any(|c| c.section == number), "{number} {title}");
    }
    for c in &criteria {
        assert!(SECTIONS.iter().any(|(number, _)| *number == c.section), "{}", c.what);
        for figure in &c.figures {
            let measure = measure::find(figure.measure).unwrap();
            assert!(measure.name == figure.measure && !c.figures.is_empty());
        }
        let scenario = c.scenario("rrtp,sack".into(), 2, 1).unwrap();
        Plan::new(scenario).unwrap();
    }
}

/// A standard compared with itself is alike in all figures.
#[test]
fn cubic_is_like_cubic() {
    for row in measure(&scorecard("cubic", "5.1.5")) {
        for e in &row.entries {
            assert_eq!(e.judgement, Judgement::Alike, "{}: {:?}", row.criterion.what, e.means);
            assert_eq!(e.means[0], e.means[2], "{}", row.criterion.what);
        }
    }
}

/// A sender that does not back off on a dead path is detected.
#[test]
fn protocol_without_backoff_scores_worse() {
    let rows = measure(&scorecard("fixed(rate=5Mbit/s)", "5.1.1"));
    assert_eq!(rows[0].entries[0].judgement, Judgement::Worse, "{:?}", rows[0].entries);
}

#[test]
fn a_difference_counts_beyond_its_interval_and_a_twentieth() {
    let of = |x: [f64; 3]| x.to_vec();
    let low = of([1.0, 1.1, 0.9]);
    let high = of([2.0, 2.1, 1.9]);
    let wide = of([0.2, 3.0, 1.2]);
    let values = |a: &Vec<f64>, b: &Vec<f64>| [a.clone(), b.clone(), b.clone(), b.clone()];
    assert_eq!(judge::judge(&values(&high, &low), true), Judgement::Better);
    assert_eq!(judge::judge(&values(&high, &low), false), Judgement::Worse);
    assert_eq!(judge::judge(&values(&wide, &low), true), Judgement::Alike);
    let near: Vec<f64> = low.iter().map(|x| x * 1.04).collect();
    assert_eq!(judge::judge(&values(&near, &low), true), Judgement::Alike);
    // Better than one of the two only.
    let between = [of([1.5, 1.6, 1.4]), low.clone(), high, low];
    assert_eq!(judge::judge(&between, true), Judgement::Alike);
}

#[test]
fn missing_figures_are_shown_as_missing() {
    let control = RunControl::quiet(1);
    let e = scorecard("rrtp", "9").measure(&control).unwrap_err();
    assert!(e.contains("'9'") && e.contains("5.1.1"), "{e}");
    let e = scorecard("vegsa", "5.1.2").measure(&control).unwrap_err();
    assert!(e.contains("vegas"), "{e}");
}
