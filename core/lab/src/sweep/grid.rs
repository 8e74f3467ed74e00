//! The grid of a sweep: parameters, their values, and all combinations.

use super::base::{Base, Knob};
use super::values;
use narrows_base::SpecError;
use narrows_scenario::plan::Plan;
use narrows_scenario::scenario::Scenario;

/// Limit on the points of a sweep.
pub const MAX_POINTS: usize = 100_000;
/// Limit on the runs of a sweep: points times seeds.
pub const MAX_RUNS: usize = 1_000_000;

/// A varied parameter and its values.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// As given; several names joined by `=` vary together.
    pub name: String,
    /// The values of the base that it sets; all get the same value.
    pub knobs: Vec<Knob>,
    /// As given, or expanded from a range.
    pub values: Vec<String>,
    /// The values as numbers in `unit`, if all of them are numbers.
    pub numbers: Option<Vec<f64>>,
    /// Base unit of the numbers; may be empty.
    pub unit: &'static str,
    /// Whether the values are spaced by factors.
    pub log: bool,
}

/// All parameters; the first one varies slowest.
#[derive(Clone)]
pub struct Grid {
    /// The scenario that is varied.
    pub base: Base,
    /// The varied parameters with their values.
    pub parameters: Vec<Parameter>,
}

impl Parameter {
    /// Reads `NAME=VALUES` or `NAME=NAME=VALUES`.
    ///
    /// # Errors
    /// An invalid form, name or list.
    pub fn read(base: &Base, text: &str) -> Result<Parameter, SpecError> {
        let parts = split(text);
        let Some((list, names)) = parts.split_last().filter(|p| !p.1.is_empty()) else {
            let e = format!("'{text}': a parameter is varied as NAME=VALUE,VALUE");
            return Err(SpecError::new(e));
        };
        let mut knobs = Vec::new();
        for name in names {
            knobs.push(base.knob(name.trim())?);
        }
        let whole = knobs.iter().any(Knob::is_whole);
        let name = names.iter().map(|n| n.trim()).collect::<Vec<_>>().join("=");
        let (values, log) = values::parse(list, whole).map_err(|e| e.at(&name))?;
        Ok(Parameter::of(name, knobs, values, log))
    }

    fn of(name: String, knobs: Vec<Knob>, values: Vec<String>, log: bool) -> Parameter {
        let (numbers, unit) = values::numbers(&values).map_or((None, ""), |n| (Some(n.0), n.1));
        let log = log || numbers.as_ref().is_some_and(|n| spaced_by_factors(n));
        Parameter { name, knobs, values, numbers, unit, log }
    }
}

/// Splits at `=` outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let mut from = 0;
    let mut out = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => {
                out.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

/// Whether three or more numbers grow by about the same factor, as 1, 2, 4 or 1, 2, 5, 10 do.
fn spaced_by_factors(numbers: &[f64]) -> bool {
    if numbers.len() < 3 || numbers.iter().any(|x| *x <= 0.0) {
        return false;
    }
    let factors: Vec<f64> = numbers.windows(2).map(|w| w[1] / w[0]).collect();
    let (min, max) = factors.iter().fold((f64::MAX, 0.0f64), |m, f| (m.0.min(*f), m.1.max(*f)));
    min >= 1.5 && max / min <= 2.0
}

impl Grid {
    /// Reads the arguments of `--vary`.
    ///
    /// # Errors
    /// An invalid text, a name varied twice, too many points.
    pub fn read(base: Base, vary: &[String]) -> Result<Grid, SpecError> {
        let mut parameters: Vec<Parameter> = Vec::new();
        for text in vary {
            let parameter = Parameter::read(&base, text).map_err(|e| e.at("--vary"))?;
            let twice = |p: &Parameter| p.knobs.iter().any(|k| parameter.knobs.contains(k));
            if parameters.iter().any(twice) {
                let e = format!("--vary: '{}' is varied twice", parameter.name);
                return Err(SpecError::new(e));
            }
            parameters.push(parameter);
        }
        if let Some((name, list)) = base.turns()? {
            let knob = base.knob(name)?;
            if !parameters.iter().any(|p| p.knobs.contains(&knob)) {
                parameters.push(Parameter::of(name.into(), vec![knob], list, false));
            }
        }
        if parameters.is_empty() {
            return Err(SpecError::new("no parameter varies; give --vary NAME=VALUE,VALUE"));
        }
        let points = parameters.iter().fold(1usize, |n, p| n.saturating_mul(p.values.len()));
        if points > MAX_POINTS {
            return Err(SpecError::new(format!(
                "--vary: {points} points are too many; a sweep has at most {MAX_POINTS}"
            )));
        }
        Ok(Grid { base, parameters })
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.parameters.iter().map(|p| p.values.len()).product()
    }

    /// The index of each parameter's value at a point.
    pub fn indices(&self, point: usize) -> Vec<usize> {
        let mut rest = point;
        let mut out = vec![0; self.parameters.len()];
        for (i, p) in self.parameters.iter().enumerate().rev() {
            out[i] = rest % p.values.len();
            rest /= p.values.len();
        }
        out
    }

    /// `rate=1Mbit/s, flows=4`.
    pub fn label(&self, point: usize) -> String {
        let at = self.indices(point);
        let parts =
            self.parameters.iter().zip(at).map(|(p, i)| format!("{}={}", p.name, p.values[i]));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// A point's scenario.
    ///
    /// # Errors
    /// An invalid value, with the point.
    pub fn scenario(&self, point: usize) -> Result<Scenario, SpecError> {
        let at = self.indices(point);
        let values: Vec<(&Knob, &str)> = (self.parameters.iter().zip(at))
            .flat_map(|(p, i)| p.knobs.iter().map(move |k| (k, p.values[i].as_str())))
            .collect();
        let mut scenario = self.base.scenario(&values).map_err(|e| e.at(&self.label(point)))?;
        // The sweep selects the recorded time series itself.
        scenario.probe = narrows_scenario::scenario::SeriesSelection::default();
        Ok(scenario)
    }

    /// A checked point.
    ///
    /// # Errors
    /// As [`Grid::scenario`], and errors of the plan.
    pub fn plan(&self, point: usize) -> Result<Plan, SpecError> {
        Plan::new(self.scenario(point)?).map_err(|e| e.at(&self.label(point)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Question;
    use narrows_link::QueueLimit;

    fn grid(vary: &[&str]) -> Result<Grid, SpecError> {
        let question = Question { protocols: "reno".into(), ..Question::default() };
        let vary: Vec<String> = vary.iter().map(ToString::to_string).collect();
        Grid::read(Base::Link(Box::new(question)), &vary)
    }

    #[test]
    fn the_first_parameter_varies_slowest() {
        let g = grid(&["rate=1Mbit/s,2Mbit/s", "flows=1,2,3"]).unwrap();
        let labels: Vec<String> = (0..g.points()).map(|p| g.label(p)).collect();
        assert_eq!(labels[0], "rate=1Mbit/s, flows=1");
        assert_eq!(labels[1], "rate=1Mbit/s, flows=2");
        assert_eq!(labels[3], "rate=2Mbit/s, flows=1");
        assert_eq!(labels.len(), 6);
    }

    #[test]
    fn queue_in_bdp_follows_the_varied_value() {
        let g = grid(&["rate=1Mbit/s,4Mbit/s", "delay=10ms,100ms", "queue=2bdp"]).unwrap();
        let room = |p| {
            let s = g.scenario(p).unwrap();
            s.links[0].forward.limit(narrows_base::Duration::ZERO, s.packet)
        };
        // The wireless default adds access links of 0.1 ms: 2 · 1 Mbit/s · 20.2 ms is 5.05 packets.
        assert_eq!(room(0), QueueLimit::Either { packets: 6, bytes: 5050 });
        assert_eq!(room(3), QueueLimit::Either { packets: 201, bytes: 200_200 });
    }

    #[test]
    fn a_parameter_goes_into_the_protocol_of_its_point() {
        let g = grid(&["protocol.alpha=1,2", "protocol=vegas,vegas(beta=5)"]).unwrap();
        let text = |p| g.scenario(p).unwrap().protocols[0].to_string();
        assert_eq!(text(0), "vegas(alpha=1)");
        assert_eq!(text(3), "vegas(beta=5,alpha=2)");
        assert!(g.plan(3).is_ok());
        let wrong = grid(&["protocol.alhpa=1"]).unwrap().plan(0).unwrap_err().to_string();
        assert!(wrong.contains("protocol.alhpa=1") && wrong.contains("unknown"), "{wrong}");
    }

    #[test]
    fn wrong_grids_say_why() {
        for (vary, hint) in [
            (&["rat=1Mbit/s"][..], "'rate'"),
            (&["rate"], "NAME=VALUE"),
            (&["rate="], "missing"),
            (&[], "no parameter varies"),
            (&["rate=1Mbit/s", "rate=2Mbit/s"], "twice"),
            (&["flows=1..1000:1000", "delay=1ms..2ms:1000"], "too many"),
        ] {
            let e = grid(vary).map(|_| ()).unwrap_err().to_string();
            assert!(e.contains(hint), "{vary:?}: {e}");
        }
    }
}
