//! Distributions of links: a link's specification with ranges as values. Each episode draws one link.

use narrows_base::{RandomKey, SpecError, math, spec, units};
use narrows_scenario::BottleneckLink;
use std::path::{Path, PathBuf};

/// Keys whose ranges are spread over the flows' own links. Their middle is used here.
const NO_RANGES: [&str; 2] = ["access", "egress"];
const FORM: &str =
    "a range is written as 1Mbit/s..100Mbit/s, spaced by factors as 1Mbit/s..100Mbit/s log";

/// A link's specification with a range or a fixed value for each key.
#[derive(Clone, Debug)]
pub struct LinkDistribution {
    /// The specification with each range's lower end in its place.
    base: String,
    folder: PathBuf,
    ranges: Vec<DrawnKey>,
}

/// A key of the link that is drawn.
#[derive(Clone, PartialEq, Debug)]
struct DrawnKey {
    key: String,
    low: f64,
    high: f64,
    unit: String,
    log: bool,
}

impl LinkDistribution {
    /// Reads `RATE,DELAY[,key=value]*` or a link's name. `rate=` and `delay=` may stand before the first two, and every
    /// value may be a range. Trace files are found from `folder`.
    ///
    /// # Errors
    /// One line that names the place, the fault and the expected text.
    pub fn parse(text: &str, folder: &Path) -> Result<LinkDistribution, SpecError> {
        let mut ranges = Vec::new();
        let mut values = Vec::new();
        let mut keys = Vec::new();
        let numeric = |c: char| c.is_ascii_digit() || "+-.".contains(c);
        let mut named = false;
        for (i, piece) in spec::split(text.trim())?.into_iter().enumerate() {
            let (key, value) = match piece.split_once('=') {
                Some((key, value)) => (key.trim(), value.trim()),
                None => {
                    named |= i == 0 && !piece.trim().starts_with(numeric);
                    (["rate", "delay"].get(i).copied().unwrap_or_default(), piece.trim())
                }
            };
            let range = DrawnKey::parse(key, value)?;
            let low = range.as_ref().map_or_else(|| value.to_string(), |r| r.text(r.low));
            ranges.extend(range);
            match key {
                // These are written by their places, unless they replace those of a named link.
                "rate" if !named || i == 0 => values.insert(0, low),
                "delay" if !named => values.push(low),
                "" => keys.push(low),
                _ => keys.push(format!("{key}={low}")),
            }
        }
        values.append(&mut keys);
        let distribution =
            LinkDistribution { base: values.join(","), folder: folder.to_path_buf(), ranges };
        // Both ends must be links.
        for end in [|r: &DrawnKey| r.low, |r: &DrawnKey| r.high] {
            distribution.link(end)?;
        }
        Ok(distribution)
    }

    /// The link that belongs to a key.
    ///
    /// # Errors
    /// Values that are possible alone, but not together.
    pub fn draw(&self, random_key: RandomKey) -> Result<BottleneckLink, SpecError> {
        self.link(|r| r.value(random_key.named(&r.key).draw(0)))
    }

    fn link(&self, value: impl Fn(&DrawnKey) -> f64) -> Result<BottleneckLink, SpecError> {
        let texts: Vec<String> = self.ranges.iter().map(|r| r.text(value(r))).collect();
        let varied: Vec<(&str, &str)> =
            self.ranges.iter().zip(&texts).map(|(r, t)| (r.key.as_str(), t.as_str())).collect();
        BottleneckLink::parse_with(&self.base, &varied, &self.folder)
    }
}

impl DrawnKey {
    /// `None` if the value is not a range.
    fn parse(key: &str, value: &str) -> Result<Option<DrawnKey>, SpecError> {
        let Some((low, rest)) = value.split_once("..") else { return Ok(None) };
        if NO_RANGES.contains(&key) {
            return Ok(None);
        }
        let wrong = |why: &str| SpecError::new(format!("'{value}': {why}; {FORM}"));
        if value.contains('(') {
            return Err(wrong("a range inside parentheses is not supported"));
        }
        let (high, log) = match rest.strip_suffix("log") {
            Some(high) => (high.trim_end().trim_end_matches(':'), true),
            None => (rest, false),
        };
        let (low, high, unit) = units::ends(low, high).map_err(wrong)?;
        if low > high {
            return Err(wrong("it runs backwards"));
        }
        if log && low <= 0.0 {
            return Err(wrong("a range spaced by factors needs ends above 0"));
        }
        let key = key.to_string();
        let unit = unit.to_string();
        Ok(Some(DrawnKey { key, low, high, unit, log }))
    }

    /// The value at a part of the range in [0, 1).
    fn value(&self, part: f64) -> f64 {
        match self.log {
            true => self.low * math::pow(self.high / self.low, part),
            false => self.low + (self.high - self.low) * part,
        }
    }

    fn text(&self, value: f64) -> String {
        // Packets are whole.
        let value = if self.unit == "p" { value.round() } else { value };
        format!("{value}{}", self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LinkDistribution, SpecError> {
        LinkDistribution::parse(text, Path::new(""))
    }

    /// Protects: every draw lies in its range, and both halves of the range are drawn, also with spacing by factors.
    #[test]
    fn draws_fill_their_ranges() {
        let text = "rate=1Mbit/s..100Mbit/s log, delay=5ms..200ms, loss=0..5%, queue=5p..50p";
        let d = parse(text).unwrap();
        let mut below_ten = 0;
        let mut short = 0;
        for n in 0..400 {
            let link = d.draw(RandomKey::from_seed(n)).unwrap().forward;
            let rate = link.rate.as_bps() as f64;
            let delay = link.delay.as_secs_f64();
            assert!((1e6..=1e8).contains(&rate) && (0.005..=0.2).contains(&delay), "{link:?}");
            below_ten += u32::from(rate < 1e7);
            short += u32::from(delay < 0.1025);
        }
        assert!((160..240).contains(&below_ten), "half of the factors are below 10: {below_ten}");
        assert!((160..240).contains(&short), "half of the delays are below the middle: {short}");
    }

    /// Protects: a key gives the same link each time, another key another one, and a value without a range stays.
    #[test]
    fn a_key_is_a_link() {
        let d = parse("1Mbit/s..100Mbit/s log,20ms,reverse-loss=1%..2%").unwrap();
        let text = |seed| d.draw(RandomKey::from_seed(seed)).unwrap().to_string();
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
        assert!(text(1).contains(",20ms") && text(1).contains("reverse-loss=1."), "{}", text(1));
        let other =
            parse("geo,rate=1Mbit/s..2Mbit/s").unwrap().draw(RandomKey::from_seed(1)).unwrap();
        assert!(other.forward.rate.as_bps() <= 2_000_000, "{other}");
        let one = parse("geo,loss=1%").unwrap();
        let named = BottleneckLink::parse("geo,loss=1%", Path::new("")).unwrap().to_string();
        assert_eq!(one.draw(RandomKey::from_seed(1)).unwrap().to_string(), named);
    }

    /// Protects: a faulty distribution is refused when it is read, not in a later episode.
    #[test]
    fn impossible_distribution_is_refused_at_once() {
        for (bad, hint) in [
            ("", "empty"),
            ("10Mbit/s", "delay is missing"),
            ("10Mbit/s,5ms..1ms", "backwards"),
            ("0Mbit/s..1Mbit/s log,5ms", "above 0"),
            ("1Mbit/s..5ms,5ms", "different kinds"),
            ("1Mbit/s..x,5ms", "ends with no number"),
            ("10Mbit/s,5ms,loss=0..500%", "between 0 and 1"),
            ("10Mbit/s,5ms,loss=ge(g=1%..2%)", "parentheses"),
            ("10Mbit/s,5ms,lost=0..1%", "did you mean"),
        ] {
            let e = parse(bad).unwrap_err().to_string();
            assert!(e.contains(hint), "{bad:?}: {e}");
        }
    }
}
