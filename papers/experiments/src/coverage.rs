//! The papers' numbered figures and tables that experiments cover, and the results: the first screen of
//! `docs/validation.md`, from `experiments/figures.toml`.

use crate::judge::{CheckedClaim, Verdict};
use crate::row_references;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Contents of `experiments/figures.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    paper: Vec<Paper>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    name: String,
    title: String,
    /// Number in the paper, such as `figure 3.8`, and the experiment's folder.
    judged: BTreeMap<String, String>,
    #[serde(default)]
    missing: Vec<MissingClaims>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MissingClaims {
    numbers: Vec<String>,
    why: String,
}

/// Claims by their verdicts.
#[derive(Clone, Copy, Debug, Default)]
struct VerdictCounts([usize; 4]);

impl VerdictCounts {
    fn add(&mut self, verdict: Verdict) {
        let column = match verdict {
            Verdict::Reproduced => 0,
            Verdict::Undecided => 1,
            Verdict::Differs => 2,
            Verdict::Impossible => 3,
            Verdict::Given => return,
        };
        self.0[column] += 1;
    }
    fn cells(self) -> String {
        self.0.map(|n| if n == 0 { "·".into() } else { n.to_string() }).join(" | ")
    }
}

impl CheckedClaim {
    /// Whether this is a goal of Narrows rather than a figure of the paper; it uses the paper's scenario.
    pub fn is_own_goal(&self) -> bool {
        matches!(self.stated.as_str(), "not stated" | "not tried" | "left for future work")
    }

    /// Whether this is counted as a claim of the paper.
    pub fn counts(&self) -> bool {
        !self.is_own_goal() && self.beside.is_none()
    }
}

/// Reads the list.
///
/// # Errors
/// Names the fault.
pub fn read(text: &str) -> Result<Coverage, String> {
    let list: Coverage = toml::from_str(text).map_err(|e| format!("figures.toml: {e}"))?;
    for paper in &list.paper {
        let mut all: Vec<&String> =
            paper.judged.keys().chain(paper.missing.iter().flat_map(|m| &m.numbers)).collect();
        all.sort();
        if let Some(twice) = all.windows(2).find(|w| w[0] == w[1]) {
            return Err(format!("figures.toml: {} has {} twice", paper.name, twice[0]));
        }
    }
    Ok(list)
}

impl Coverage {
    /// The experiments that it names, each once.
    pub fn experiments(&self) -> Vec<&str> {
        let mut all: Vec<&str> =
            self.paper.iter().flat_map(|p| p.judged.values()).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The coverage in numbers. `results` are all experiments of papers with their claims.
    pub fn summary(&self, results: &[(&str, &[CheckedClaim])]) -> String {
        let mut out = "| paper | its figures and tables | judged here | claims: reproduced | undecided | differs \
             | impossible |\n|---|---|---|---|---|---|---|\n"
            .to_string();
        let mut figures = 0;
        let mut judged = 0;
        let mut sum = VerdictCounts::default();
        for paper in &self.paper {
            let here = paper.judged.len();
            let all = here + paper.missing.iter().map(|m| m.numbers.len()).sum::<usize>();
            let mine = format!("{}-", paper.name.to_lowercase());
            let mut count = VerdictCounts::default();
            let claims = results.iter().filter(|r| r.0.starts_with(&mine)).flat_map(|r| r.1);
            for claim in claims.filter(|c| c.counts()) {
                count.add(claim.verdict);
                sum.add(claim.verdict);
            }
            let name = &paper.name;
            let title = &paper.title;
            let _ = writeln!(out, "| {name}, {title} | {all} | {here} | {} |", count.cells());
            figures += all;
            judged += here;
        }
        let _ = writeln!(out, "| all | {figures} | {judged} | {} |", sum.cells());
        let mut line = |name: &str, of: fn(&CheckedClaim) -> bool| {
            let mut count = VerdictCounts::default();
            let claims = results.iter().flat_map(|r| r.1).filter(|c| of(c));
            claims.for_each(|c| count.add(c.verdict));
            let _ = writeln!(out, "| {name} | | | {} |", count.cells());
        };
        line("the same claims with other settings, forms or TCPs", |c| {
            c.beside.is_some() && !c.is_own_goal()
        });
        line("goals of ours in these scenarios", CheckedClaim::is_own_goal);
        out += "\nThe papers' claims that differ, by cause. A cause counts only if a row shows it: with one change the stated value comes out, or arithmetic does.\n\n";
        let papers: Vec<&str> = self.paper.iter().map(|p| p.name.as_str()).collect();
        out + &row_references::table(&papers, results)
    }

    /// Figures without an experiment, with the reasons, under an introductory line; one line if all are covered.
    pub fn missing(&self) -> String {
        if self.paper.iter().all(|p| p.missing.is_empty()) {
            return "Each of the papers' numbered result figures and tables has an experiment.\n"
                .into();
        }
        let mut out = "Figures and tables without an experiment:\n\n".to_string();
        for paper in &self.paper {
            for missing in &paper.missing {
                let numbers = missing.numbers.join(", ");
                let _ = writeln!(out, "- **{}**, {numbers}: {}.", paper.name, missing.why);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_names_existing_folders_and_every_numbered_result() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
        let list = read(&std::fs::read_to_string(format!("{root}/figures.toml")).unwrap()).unwrap();
        for folder in list.experiments() {
            let file = format!("{root}/{folder}/experiment.toml");
            assert!(std::path::Path::new(&file).is_file(), "{file}");
        }
        // Every folder called after a figure or a table is named by one.
        let named = list.experiments();
        for folder in crate::experiment::folders(root.as_ref()).unwrap() {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let number = name.split_once('-').map_or("", |n| n.1);
            let numbered = number.strip_prefix(['f', 't']);
            if numbered.is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit())) {
                assert!(named.contains(&name.as_str()), "figures.toml does not name {name}");
            }
        }
        assert!(list.summary(&[]).contains("| all | 117 |"), "{}", list.summary(&[]));
    }

    #[test]
    fn own_goals_are_not_counted_as_the_papers() {
        let text = "[[paper]]\nname = 'S1'\ntitle = 't'\njudged = { 'figure 1' = 's1-f1' }";
        let list = read(text).unwrap();
        let claim = |stated: &str| {
            let text = format!(
                r#"{{"claim":"c","stated":"{stated}","accepted":"a","ours":"1","verdict":"undecided"}}"#
            );
            serde_json::from_str::<CheckedClaim>(&text).unwrap()
        };
        let claims = [claim("half"), claim("not stated")];
        let summary = list.summary(&[("s1-f1", &claims), ("s11-f1", &claims[..1])]);
        assert!(summary.contains("| S1, t | 1 | 1 | · | 1 | · | · |"), "{summary}");
        assert!(summary.contains("scenarios | | | · | 1 | · | · |"), "{summary}");
        assert!(list.missing().starts_with("Each of"), "{}", list.missing());
        let less = format!("{text}\n[[paper.missing]]\nnumbers = ['figure 2']\nwhy = 'lost'");
        let missing = read(&less).unwrap().missing();
        assert!(missing.ends_with("experiment:\n\n- **S1**, figure 2: lost.\n"), "{missing}");
        assert!(
            read(&(text.to_string() + "\n[[paper.missing]]\nnumbers = ['figure 1']\nwhy = ''"))
                .is_err()
        );
    }
}
