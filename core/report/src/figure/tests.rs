use super::{Figure, bars, lines};
use narrows_lab::outcome::Estimate;

fn wave(n: usize, height: f64) -> Vec<(f64, f64)> {
    (0..n).map(|i| i as f64 * 0.05).map(|t| (t, height * (1.2 + (t * 1.3).sin()))).collect()
}

fn example() -> Figure {
    let window = lines("Window <of> & \"reno\"")
        .x("time", "s")
        .y("window", "packets")
        .line("reno", wave(1200, 10.0))
        .dashed("ssthresh", wave(60, 6.0))
        .band("expected", vec![(0.0, 8.0, 14.0), (30.0, 9.0, 15.0), (60.0, 8.0, 14.0)])
        .points("S0", vec![(10.0, 12.0), (20.0, 12.5), (40.0, 11.0)]);
    let loss = lines("Goodput against loss")
        .x("loss rate", "")
        .y("goodput", "kbit/s")
        .log_x()
        .log_y()
        .line("reno", [1e-4, 1e-3, 1e-2, 1e-1].map(|p: f64| (p, 60.0 / p.sqrt())).into())
        .line("stpd", [1e-4, 1e-3, 1e-2, 1e-1].map(|p: f64| (p, 4000.0 * (1.0 - p))).into());
    let goodput = bars("Goodput")
        .x("goodput", "Mbit/s")
        .bar("reno", Estimate::symmetric(0.62, Some(0.05)))
        .bar("vegas", Estimate::symmetric(0.81, Some(0.02)))
        .bar("westwood+", Estimate::symmetric(1.1, None))
        .bar("stpd", Estimate::symmetric(1.32, Some(0.01)))
        .mark("S0", "stpd", 1.36);
    let clipped = lines("A part")
        .x("time", "s")
        .y("queue", "packets")
        .y_range(5.0, 18.0)
        .x_range(10.0, 20.0)
        .line("reno", wave(1200, 10.0));
    Figure::new()
        .panel(window)
        .panel(loss)
        .panel(goodput)
        .panel(clipped)
        .caption("narrows compare --link geo · seed 1 · narrows 0.1.0")
}

/// Every element closes in order, and no text breaks out.
fn well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bare > in {:?}", &rest[..start]);
        let end = rest[start..].find('>').expect("a tag ends") + start;
        let tag = &rest[start + 1..end];
        let name = |t: &str| t.split([' ', '\n', '/']).next().unwrap_or_default().to_string();
        if let Some(closing) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name(closing)));
        } else if !tag.ends_with('/') {
            open.push(name(tag));
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_figure_is_well_formed_and_small() {
    let svg = example().svg();
    well_formed(&svg);
    for text in ["Window &lt;of&gt; &amp;", "westwood+", "goodput, Mbit/s", "seed 1"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}

/// On a dark page, a picture with a white ground, or with black text without a ground, is unreadable.
#[test]
fn every_colour_has_one_for_dark_pages() {
    let svg = example().svg();
    let (style, drawing) = svg.split_once("</style>").expect("a style");
    assert!(style.contains("prefers-color-scheme: dark"));
    let mut colours = std::collections::BTreeSet::new();
    for attribute in ["fill=\"#", "stroke=\"#"] {
        for part in drawing.split(attribute).skip(1) {
            colours.insert(format!("[{attribute}{}\"]", &part[..6]));
        }
    }
    assert!(colours.len() > 5, "{colours:?}");
    for colour in colours {
        assert!(style.contains(&colour), "{colour} stays as it is");
    }
}

#[test]
fn empty_and_odd_data_are_drawn() {
    well_formed(&Figure::new().svg());
    let odd = vec![(f64::NAN, 1.0), (0.0, f64::INFINITY), (1.0, 1e300), (2.0, -1e300)];
    let panel =
        |p: super::Panel| p.line("a", odd.clone()).points("b", odd.clone()).dashed("c", vec![]);
    let all = Figure::new()
        .panel(panel(lines("linear")))
        .panel(panel(lines("log").log_x().log_y()))
        .panel(lines("empty").x_range(3.0, 3.0))
        .panel(bars("none"))
        .panel(
            bars("odd")
                .bar("x", Estimate::symmetric(f64::NAN, Some(f64::NAN)))
                .bar("y", Estimate::symmetric(-1.0, None))
                .log_x(),
        )
        .columns(3);
    well_formed(&all.svg());
}
