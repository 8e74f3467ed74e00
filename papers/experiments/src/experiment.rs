//! `experiment.toml`: the definition of an experiment.

use super::cause::{self, DifferenceCause};
use super::quantity::{NameList, Quantity};
use super::varied;
use narrows_base::units::{self, Unit};
use narrows_scenario::plan::Plan;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// An experiment as its folder describes it.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Folder with `experiment.toml`.
    pub folder: PathBuf,
    /// Contents of `experiment.toml`.
    pub file: ExperimentFile,
    /// Its runs, scenarios read and checked.
    pub runs: Vec<PlannedRun>,
}

/// The format of `experiment.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// The folder's name, such as `s0-f3.8`.
    pub id: String,
    /// One line.
    pub title: String,
    /// Paper, section and figure.
    pub source: String,
    /// Content of the figure, in a sentence.
    pub shows: String,
    /// Reasons for choices in the scenario that the paper leaves open.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Simulations; empty if all quantities are models.
    #[serde(default)]
    pub run: Vec<RunFile>,
    /// The figure's panels, from left to right and top to bottom.
    #[serde(default)]
    pub panel: Vec<PanelSpec>,
    /// Claims of the paper.
    pub claim: Vec<Claim>,
}

impl ExperimentFile {
    /// Gives claims with `reason_of` the reason of that claim, and rows that are referred to their full names.
    fn share_reasons(&mut self) -> Result<(), String> {
        for i in 0..self.claim.len() {
            let mut claim = self.claim[i].clone();
            let say = |e: String| format!("claim '{}': {e}", self.claim[i].text);
            if let Some(number) = claim.reason_of {
                let of = number.checked_sub(1).and_then(|n| self.claim.get(n));
                let of = of.filter(|c| c.why.is_some() && claim.why.is_none());
                let of = of.ok_or_else(|| say(format!("reason_of = {number}, which has none")))?;
                claim.why.clone_from(&of.why);
                claim.cause = of.cause;
                claim.shown = claim.shown.or_else(|| of.shown.clone());
            }
            for row in [&mut claim.shown, &mut claim.beside].into_iter().flatten() {
                *row = cause::qualified(row, &self.id).map_err(say)?;
            }
            self.claim[i] = claim;
        }
        Ok(())
    }
}

/// A run: a scenario, possibly with variations of some values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// Its name in quantities and panels. Without a name there, the first run is meant.
    #[serde(default = "main_name")]
    pub name: String,
    /// The scenario's file in the same folder, as `narrows run` reads it.
    pub scenario: String,
    /// Which of the scenario's values are varied, as `narrows sweep --vary` names them:
    /// `link.NAME.KEY`, `flows.NAME.KEY.PARAMETER`, a key at the top.
    #[serde(default)]
    pub set: NameList,
    /// Values of each key; each entry is a run of its own, named after its first value.
    #[serde(default)]
    pub values: Vec<NameList>,
    /// Position of each value on a panel's axis; by default the value itself.
    #[serde(default)]
    pub at: Vec<f64>,
}

/// One picture of the figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelSpec {
    /// Above it.
    pub title: String,
    /// Horizontal axis.
    pub x: PanelAxis,
    /// Vertical axis.
    pub y: PanelAxis,
    /// Lines of the panel.
    pub line: Vec<PanelLine>,
    /// Horizontal lines that the text speaks of.
    #[serde(default)]
    pub level: Vec<HorizontalLine>,
    /// Numbers that the paper states.
    #[serde(default)]
    pub stated: Vec<Stated>,
}

/// Label, unit and range.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelAxis {
    /// Label of the axis.
    pub label: String,
    /// In which unit.
    #[serde(default)]
    pub unit: String,
    /// Where it begins and ends; by default where the data do.
    pub range: Option<[f64; 2]>,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// A line of a panel. A column of a table is drawn over time, first seed; any other quantity is
/// drawn over the varied values of its run, with its mean and 95% interval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelLine {
    /// Its name.
    pub label: String,
    /// Quantity of the line.
    pub show: Quantity,
    /// For a model over varied values: which of its arguments they are.
    pub vary: Option<String>,
    /// For a model: the values of its varied argument, independent of the runs' values.
    pub span: Option<ValueSpan>,
    /// Everything below the line is filled: a region.
    #[serde(default)]
    pub fill: bool,
    /// Whether it is a reference rather than data: dashed.
    #[serde(default)]
    pub dashed: bool,
}

/// Equally spaced values.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueSpan {
    /// The first.
    pub from: f64,
    /// The last, unless the steps pass it.
    pub to: f64,
    /// From one to the next.
    pub step: f64,
}

impl ValueSpan {
    /// The values; at most a hundred thousand.
    pub fn values(self) -> impl Iterator<Item = f64> {
        let steps = ((self.to - self.from) / self.step + 1e-9).clamp(0.0, 1e5) as u32;
        (0..=steps).map(move |i| self.from + f64::from(i) * self.step)
    }
}

/// A constant level drawn over the whole panel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HorizontalLine {
    /// Its height.
    pub at: f64,
    /// Meaning of the level.
    pub label: String,
}

/// Points that the paper states.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// Their name.
    pub label: String,
    /// Where they are.
    pub at: Vec<(f64, f64)>,
}

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in the project's own words.
    pub text: String,
    /// The number or range that the paper states.
    pub stated: String,
    /// The quantity that is compared with the claim.
    pub measure: Quantity,
    /// The unit of the measure, for the table.
    #[serde(default)]
    pub unit: String,
    /// Smallest value that counts as reproduced; chosen before the first run.
    pub min: Option<f64>,
    /// Largest value that counts as reproduced; chosen before the first run.
    pub max: Option<f64>,
    /// Whether the scenario was fitted to the stated value. If so, the claim is no evidence about a protocol.
    #[serde(default)]
    pub given: bool,
    /// Statistic over the seeds that is compared; by default the mean.
    #[serde(default)]
    pub over_seeds: OverSeeds,
    /// Derivation of the accepted range from the stated value.
    pub basis: String,
    /// Why the result differs. Required if it does, forbidden if it does not.
    pub why: Option<String>,
    /// Why the stated number is impossible, with the bound.
    pub impossible: Option<String>,
    /// In place of `why` and `cause`: the number of the claim that has the same reason.
    pub reason_of: Option<usize>,
    /// DifferenceCause of the difference.
    #[serde(default)]
    pub cause: DifferenceCause,
    /// The row that shows the cause: one change, and the stated value comes out. `#3` is in this experiment,
    /// `s0-f4.8#14` in another.
    pub shown: Option<String>,
    /// The row that judges the same statement with the chosen settings; this one shows other settings and is not
    /// counted.
    pub beside: Option<String>,
}

/// How the results of several seeds become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverSeeds {
    /// Their mean, with its 95% interval.
    #[default]
    Mean,
    /// The mean of those within three standard deviations of all, the rest being outliers (RRTP thesis, section 4.4).
    Valid,
    /// Their median, for experiments in which some runs stall indefinitely.
    Median,
    /// Each seed on its own, for a claim about every run ("fair", "nobody starves"): the share of seeds with a value in
    /// the accepted range. It must be at least [`EVERY`].
    Every,
    /// The same share, for a paper that shows one random trace: at least one run has a value in the accepted range.
    Some,
    /// The same share, below [`EVERY`]: chance denies a claim about every run even to equal flows.
    NotEvery,
}

/// Which share of runs must keep a claim about every run.
pub const EVERY: f64 = 0.9;

/// The least share of runs that shows that there is one: below the interval of one run in eighty, above that of none.
const SOME: f64 = 0.001;

impl Claim {
    /// The accepted range of the compared value.
    pub fn range(&self) -> (Option<f64>, Option<f64>) {
        match self.over_seeds {
            OverSeeds::Every => (Some(EVERY), None),
            OverSeeds::Some => (Some(SOME), None),
            OverSeeds::NotEvery => (None, Some(EVERY)),
            OverSeeds::Mean | OverSeeds::Valid | OverSeeds::Median => (self.min, self.max),
        }
    }
    /// The unit of the compared value.
    pub fn shown_unit(&self) -> &str {
        match self.over_seeds {
            OverSeeds::Every | OverSeeds::Some | OverSeeds::NotEvery => "of runs",
            OverSeeds::Mean | OverSeeds::Valid | OverSeeds::Median => &self.unit,
        }
    }
}

/// A run with its scenario: one plan per varied value, or a single plan.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Name from the file.
    pub name: String,
    /// The varied value (empty without variation) and the checked scenario.
    pub plans: Vec<(String, Plan)>,
    /// The varied values as numbers.
    pub at: Vec<f64>,
}

fn main_name() -> String {
    "main".into()
}

/// Reads the experiment in a folder.
///
/// # Errors
/// One line that names the file and the fault.
pub fn load(folder: &Path) -> Result<Experiment, String> {
    let path = folder.join("experiment.toml");
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let mut file: ExperimentFile =
        toml::from_str(&text).map_err(|e| format!("{shown}: {}", one_line(&e)))?;
    file.share_reasons().map_err(|e| format!("{shown}: {e}"))?;
    let runs = file.run.iter().map(|r| read_run(folder, r)).collect::<Result<_, _>>();
    let runs: Vec<PlannedRun> = runs.map_err(|e: String| format!("{shown}: {e}"))?;
    let experiment = Experiment { folder: folder.to_path_buf(), file, runs };
    experiment.check().map_err(|e| format!("{shown}: {e}"))?;
    Ok(experiment)
}

/// All experiment folders under `root`, by name.
///
/// # Errors
/// A folder that cannot be read.
pub fn folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
    let mut out: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.join("experiment.toml").is_file())
        .collect();
    // Figures by number: 3.8 before 3.10.
    out.sort_by_key(|p| natural(&p.file_name().unwrap_or_default().to_string_lossy()));
    Ok(out)
}

/// A key by which names sort as people count.
pub(crate) fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for c in name.chars() {
        let last = key.len() - 1;
        if let Some(d) = c.to_digit(10) {
            key[last].1 = key[last].1.saturating_mul(10).saturating_add(u64::from(d));
            in_number = true;
        } else if in_number {
            key.push((c.to_string(), 0));
            in_number = false;
        } else {
            key[last].0.push(c);
        }
    }
    key
}

fn one_line(e: &toml::de::Error) -> String {
    e.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn read_run(folder: &Path, run: &RunFile) -> Result<PlannedRun, String> {
    let say = |e: String| format!("run '{}': {e}", run.name);
    let keys = &run.set.0;
    let values = &run.values;
    if keys.is_empty() != values.is_empty() {
        return Err(say(format!("sets {keys:?} but has {} values", values.len())));
    }
    let plan = |values: &[String]| {
        if values.len() != keys.len() {
            return Err(say(format!("{values:?} are not one value for each of {keys:?}")));
        }
        let pairs = keys.iter().zip(values).map(|(k, v)| (k.as_str(), v.as_str()));
        let mut scenario = varied::scenario(folder, &run.scenario, &pairs.collect::<Vec<_>>())?;
        if scenario.name.is_empty() {
            scenario.name.clone_from(&run.name);
        }
        let plan = Plan::new(scenario).map_err(|e| say(e.to_string()))?;
        Ok::<_, String>((values.first().cloned().unwrap_or_default(), plan))
    };
    let plans = match values.is_empty() {
        true => vec![plan(&[])?],
        false => values.iter().map(|v| plan(&v.0)).collect::<Result<Vec<_>, _>>()?,
    };
    if let Some(i) = (1..plans.len()).find(|i| plans[..*i].iter().any(|p| p.0 == plans[*i].0)) {
        return Err(say(format!("two values are called '{}'", plans[i].0)));
    }
    let at = if run.at.is_empty() {
        plans.iter().map(|p| number(&p.0)).collect()
    } else {
        run.at.clone()
    };
    if at.len() != plans.len() {
        return Err(say(format!("has {} values but {} at", plans.len(), at.len())));
    }
    if let Some(i) = at.iter().position(|x| !x.is_finite()).filter(|_| !values.is_empty()) {
        let value = &plans[i].0;
        let n = plans.len();
        return Err(say(format!(
            "value '{value}' is no number; give at = [...], {n} places on an axis"
        )));
    }
    Ok(PlannedRun { name: run.name.clone(), plans, at })
}

/// `1%` is 0.01, `1.5Mbit/s` is 1500000, `13p` is 13.
fn number(text: &str) -> f64 {
    let known = [Unit::Fraction, Unit::BitsPerSecond, Unit::Seconds, Unit::Bytes, Unit::Packets];
    known.into_iter().find_map(|u| units::number(text, u).ok()).unwrap_or(f64::NAN)
}

impl Experiment {
    /// Whether its parts fit together.
    fn check(&self) -> Result<(), String> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        if name != self.file.id {
            return Err(format!("id is '{}' but the folder is called '{name}'", self.file.id));
        }
        for claim in &self.file.claim {
            let say = |e: String| format!("claim '{}': {e}", claim.text);
            claim.measure.check(self).map_err(say)?;
            if claim.min.is_none() && claim.max.is_none() {
                return Err(say("accepts anything; give min, max or both".into()));
            }
        }
        for panel in &self.file.panel {
            for line in &panel.line {
                let mut show = line.show.clone();
                if let Some(argument) = &line.vary {
                    show.with.insert(argument.clone(), 0.0);
                }
                if line.span.is_some() && (line.vary.is_none() || show.model.is_none()) {
                    return Err(format!(
                        "panel '{}': span = … goes with a model and vary",
                        panel.title
                    ));
                }
                show.check(self).map_err(|e| format!("panel '{}': {e}", panel.title))?;
            }
        }
        Ok(())
    }
    /// The run of that name; without a name, the first.
    pub fn find_run(&self, name: Option<&str>) -> Option<usize> {
        match name {
            None => (!self.runs.is_empty()).then_some(0),
            Some(name) => self.runs.iter().position(|r| r.name == name),
        }
    }
}
