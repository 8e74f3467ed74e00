//! The page: its tables, and which rows agree.

use super::reference::Why;
use narrows_lab::outcome::Estimate;
use narrows_lab::stats::student_t975;
use narrows_scenario::plan::Plan;
use std::fmt::Write as _;

pub struct ComparisonPage {
    pub out: String,
    pub summary: String,
    /// Of the present table.
    pub title: &'static str,
    /// Rows of the present table that agree, and all.
    pub agreed: [usize; 2],
    /// Explanations not used yet.
    pub why: Vec<Why>,
    pub faults: Vec<String>,
}

impl ComparisonPage {
    /// Begins a table's section.
    pub fn begin(&mut self, title: &'static str) {
        self.title = title;
        self.agreed = [0, 0];
        let _ = write!(self.out, "## {title}\n\n");
    }

    /// Checks a row; an explanation goes to `notes`.
    pub fn verdict(
        &mut self,
        agrees: bool,
        table: &str,
        variant: &str,
        at: &str,
        notes: &mut Vec<String>,
    ) -> String {
        self.agreed[0] += usize::from(agrees);
        self.agreed[1] += 1;
        if agrees {
            return "agrees".into();
        }
        let found = |w: &Why| w.table == table && w.variant == variant && w.at == at;
        match self.why.iter().position(found) {
            Some(i) => {
                let why = self.why.remove(i).why;
                let n = notes.iter().position(|n| *n == why).unwrap_or_else(|| {
                    notes.push(why);
                    notes.len() - 1
                });
                format!("differs ({})", n + 1)
            }
            None => {
                self.faults.push(format!("{table} {variant} {at}: differs without a reason"));
                "differs".into()
            }
        }
    }

    /// Ends a table with its notes, and counts it in the summary.
    pub fn notes(&mut self, notes: &[String]) {
        let anchor: String = (self.title.to_lowercase().chars())
            .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-')
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let _ = writeln!(
            self.summary,
            "- [{}](../experiments/ns2/README.md#{anchor}): {} of {} agree.",
            self.title, self.agreed[0], self.agreed[1]
        );
        for (i, why) in notes.iter().enumerate() {
            let _ = writeln!(self.out, "\n({}) {why}", i + 1);
        }
        self.out.push('\n');
    }
}

/// ns-2 counts packet 0, which stands for the SYN, as one packet of goodput: its share of the capacity in bit/s.
pub fn first_packet(seconds: f64, capacity: f64) -> f64 {
    8000.0 / seconds / capacity
}

pub fn variant(plan: &Plan, protocol: &str) -> Result<usize, String> {
    let found = plan.scenario.protocols.iter().position(|p| p.to_string() == protocol);
    found.ok_or_else(|| format!("the scenario has no protocol '{protocol}'"))
}

pub fn share(x: Estimate) -> String {
    x.half().map_or_else(|| format!("{:.4}", x.mean), |half| format!("{:.4} ± {half:.4}", x.mean))
}

/// Half of the 95% interval of a mean over `seeds` seeds.
pub fn half(sd: f64, seeds: u32) -> f64 {
    student_t975(seeds.saturating_sub(1) as usize) * sd / f64::from(seeds).sqrt()
}
