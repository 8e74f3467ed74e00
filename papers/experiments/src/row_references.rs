//! Rows that refer to other rows, and the counts of causes.

use crate::cause::{CAUSES, DifferenceCause};
use crate::experiment::{Claim, OverSeeds};
use crate::judge::{CheckedClaim, Verdict};

/// The row that a qualified text names.
fn find<'a, T>(row: &str, results: &[(&str, &'a [T])]) -> Option<&'a T> {
    let (id, number) = row.split_once('#')?;
    let rows = results.iter().find(|r| r.0 == id)?.1;
    rows.get(number.parse::<usize>().ok()?.checked_sub(1)?)
}

/// Checks the rows that refer to others: a row beside another must be about the same statement, a counted row that names
/// a cause must name a row that shows it, and that row must have the stated result.
///
/// # Errors
/// The first row that refers to none or to a wrong one.
pub fn check(results: &[(&str, &[CheckedClaim])]) -> Result<(), String> {
    for (id, rows) in results {
        for (i, row) in rows.iter().enumerate() {
            let say = |e: &str| Err(format!("{id}, claim {}: {e}", i + 1));
            if let Some(other) = &row.beside {
                match find(other, results) {
                    Some(x) if x.beside.is_some() => {
                        return say(&format!("{other} is beside a row itself"));
                    }
                    Some(x) if x.stated == row.stated => {}
                    Some(_) => return say(&format!("{other} is about another statement")),
                    None => return say(&format!("there is no row {other}")),
                }
            }
            let differs = row.counts() && row.verdict == Verdict::Differs;
            if differs
                && row.shown.is_none()
                && row.cause.unwrap_or_default() != DifferenceCause::Untraced
            {
                return say("names a cause that no row shows: give shown = \"#…\", or no cause");
            }
            if let Some(stale) = row.why.as_deref().and_then(|why| stale_number(why, id, results)) {
                return say(&stale);
            }
            if let Some(other) = &row.shown {
                match find(other, results).map(|x| x.verdict) {
                    Some(Verdict::Reproduced | Verdict::Given) => {}
                    Some(verdict) => {
                        return say(&format!("{other}, which is to show its cause, is {verdict}"));
                    }
                    None => return say(&format!("there is no row {other}")),
                }
            }
        }
    }
    Ok(())
}

/// The first number of a reason that is not the result of the row behind it: of "it is 0.87 (claim 18)" or "98% (s3-t4.2,
/// claim 52)" the last number of the clause is that row's, rounded as written.
fn stale_number(why: &str, here: &str, results: &[(&str, &[CheckedClaim])]) -> Option<String> {
    why.match_indices('(').find_map(|(at, _)| {
        let named = why[at + 1..].split_once(')')?.0;
        let (folder, number) = named.rsplit_once("claim ")?;
        let folder = folder.strip_suffix(", ").unwrap_or(here);
        let row = find(&format!("{folder}#{number}"), results)?;
        let ends = [", ", "; ", ": ", ". ", "(", ")"];
        let clause = ends.iter().fold(&why[..at], |x, end| x.rsplit(end).next().unwrap_or(x));
        let written = clause
            .split_whitespace()
            .rev()
            .find(|w| w.starts_with(|c: char| c.is_ascii_digit()))?;
        let digits = written.trim_end_matches('%').replace(',', "");
        let value: f64 = digits.parse().ok()?;
        let percent = if written.ends_with('%') { 100.0 } else { 1.0 };
        let measured: f64 = row.ours.split_whitespace().next()?.parse().ok()?;
        let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
        let unit = 0.1_f64.powi(i32::try_from(decimals).ok()?);
        let is_stale = (measured * percent - value).abs() > 0.501 * unit;
        is_stale.then(|| format!("its reason has {written}, but {folder}#{number} is {}", row.ours))
    })
}

/// Checks that a row which shows a cause is judged as strictly as the row that differs: in no wider range, and of every
/// run if that is. Chance is shown by one run like the paper's trace, and in a claim about every run by a row of the same
/// range that not every run keeps. Arithmetic that contradicts a paper has a range of its own.
///
/// # Errors
/// The first row that is shown by a laxer one.
pub fn check_strictness(experiments: &[(&str, &[Claim])]) -> Result<(), String> {
    for (id, claims) in experiments {
        for (i, claim) in claims.iter().enumerate() {
            let Some(other) = &claim.shown else { continue };
            let say = |e: &str| {
                Err(format!("{id}, claim {}: {other}, which is to show its cause, {e}", i + 1))
            };
            let Some(shows) = find(other, experiments) else { return say("does not exist") };
            let chance = claim.cause == DifferenceCause::Chance;
            let right = match (claim.over_seeds, shows.over_seeds) {
                (OverSeeds::Every, by) if chance => by == OverSeeds::NotEvery,
                (_, OverSeeds::Some) if chance => true,
                (of, by) => by == of || by == OverSeeds::Every,
            };
            if !right {
                return say("is judged by other runs: give it over_seeds as here");
            }
            let inside = |inner: &Claim, outer: &Claim| {
                outer.min.is_none_or(|x| inner.min.is_some_and(|y| y >= x))
                    && outer.max.is_none_or(|x| inner.max.is_some_and(|y| y <= x))
            };
            let within = match shows.over_seeds {
                OverSeeds::NotEvery => inside(claim, shows),
                _ => inside(shows, claim),
            };
            if !within && claim.cause != DifferenceCause::Paper {
                return say("has a wider range");
            }
        }
    }
    Ok(())
}

/// The counted differences by cause and paper, as a table.
pub fn table(papers: &[&str], results: &[(&str, &[CheckedClaim])]) -> String {
    let differ = |paper: &str, cause: DifferenceCause| -> Vec<&CheckedClaim> {
        let mine = format!("{}-", paper.to_lowercase());
        let rows = results.iter().filter(|r| r.0.starts_with(&mine)).flat_map(|r| r.1);
        let differs = rows.filter(|j| j.counts() && j.verdict == Verdict::Differs);
        differs.filter(|j| j.cause.unwrap_or_default() == cause).collect()
    };
    let line = |name: &str, cells: &[usize]| {
        let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let mut out = format!("| cause | {} | all | shown by a row |\n", papers.join(" | "));
    out += &format!("|---|{}\n", "---|".repeat(papers.len() + 2));
    let mut sums = vec![0; papers.len() + 2];
    for cause in CAUSES {
        let found: Vec<Vec<&CheckedClaim>> = papers.iter().map(|p| differ(p, cause)).collect();
        let mut cells: Vec<usize> = found.iter().map(Vec::len).collect();
        cells.push(cells.iter().sum());
        cells.push(found.iter().flatten().filter(|j| j.shown.is_some()).count());
        sums.iter_mut().zip(&cells).for_each(|(sum, n)| *sum += n);
        out += &line(&cause.to_string(), &cells);
    }
    out + &line("all", &sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: &str, more: &str) -> CheckedClaim {
        let text = format!(
            r#"{{"claim":"c","stated":"half","accepted":"a","ours":"1","verdict":"{verdict}"{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_row_beside_another_is_about_the_same_statement() {
        let good = [row("differs", r##","beside":"a#2""##), row("set up to hold", "")];
        check(&[("a", &good)]).unwrap();
        let other = [good[0].clone(), CheckedClaim { stated: "a third".into(), ..good[1].clone() }];
        assert!(check(&[("a", &other)]).unwrap_err().contains("another statement"));
        assert!(check(&[("a", &good[..1])]).unwrap_err().contains("no row a#2"));
        let chain = [good[0].clone(), row("differs", r##","beside":"a#1""##)];
        assert!(check(&[("a", &chain)]).unwrap_err().contains("beside a row itself"));
    }

    /// A cause is shown only by a row that has the stated result.
    #[test]
    fn a_row_that_shows_a_cause_has_the_stated_result() {
        let differs = row("differs", r##","cause":"tcp","shown":"b#1""##);
        let shows = |verdict: &str| {
            check(&[("a", std::slice::from_ref(&differs)), ("b", &[row(verdict, "")])])
        };
        shows("reproduced").unwrap();
        assert!(shows("undecided").unwrap_err().contains("is undecided"));
    }

    #[test]
    fn counted_row_with_an_unshown_cause_is_refused() {
        let checked = |row: CheckedClaim| check(&[("a", std::slice::from_ref(&row))]);
        assert!(checked(row("differs", r#","cause":"tcp""#)).unwrap_err().contains("no row shows"));
        checked(row("differs", "")).unwrap();
        let own = row("differs", r#","cause":"tcp""#);
        checked(CheckedClaim { stated: "not stated".into(), ..own }).unwrap();
    }

    #[test]
    fn reason_with_a_stale_number_is_refused() {
        let results = [row("reproduced", "")];
        let result = [CheckedClaim { ours: "0.8722 ± 0.06 times".into(), ..results[0].clone() }];
        let stale = |why: &str| stale_number(why, "a", &[("a", &result)]);
        for fresh in [
            "with 25 packets, it is 0.87 (claim 1)",
            "all have 87% of it (a, claim 1); 3 others",
            "with 25 packets, all do (claim 1)",
            "it is 0.3 (claims 1 and 2)",
            "it is 0.3 (claim 2)",
        ] {
            assert_eq!(stale(fresh), None, "{fresh}");
        }
        for wrong in [
            "it is 0.88 (claim 1)",
            "for 0.2 s it is 86% (a, claim 1)",
            "0.9 of it, 0.8 here (claim 1)",
        ] {
            assert!(stale(wrong).is_some(), "{wrong}");
        }
    }

    /// What holds by the mean of the runs is no cause why not every run has it.
    #[test]
    fn a_row_that_shows_a_cause_is_judged_as_strictly() {
        let claim = |more: &str| -> Claim {
            let text = "text = 't'\nstated = 's'\nmeasure = { measure = 'theta' }\nbasis = 'b'\n";
            toml::from_str(&format!("{text}{more}")).unwrap()
        };
        let shown_by = |row: &str, shows: &str| {
            let rows = [claim(&format!("shown = 'a#2'\n{row}")), claim(shows)];
            check_strictness(&[("a", &rows)]).is_ok()
        };
        let every = "over_seeds = 'every'\nmin = 0.3\nmax = 0.7\n";
        let mean = "min = 0.3\nmax = 0.7";
        assert!(shown_by(every, every) && shown_by(mean, mean) && shown_by(mean, every));
        assert!(!shown_by(every, mean), "the mean of runs of which none has it");
        assert!(!shown_by(mean, "min = 0.2\nmax = 0.7") && !shown_by(mean, "max = 0.7"), "wider");
        assert!(shown_by(mean, "min = 0.4\nmax = 0.7"));
        let [some, denied] = ["some", "not_every"].map(|x| every.replace("every", x));
        let chance = |row: &str| format!("cause = 'chance'\n{row}");
        assert!(shown_by(&chance(mean), &some) && !shown_by(mean, &some), "one trace");
        assert!(shown_by(&chance(every), &denied) && !shown_by(every, &denied));
        assert!(!shown_by(&chance(every), &denied.replace("0.7", "0.6")), "of less than the claim");
        assert!(!shown_by(&chance(every), every) && !shown_by(&chance(every), &some));
        let paper = format!("cause = 'paper'\n{mean}");
        assert!(shown_by(&paper, "max = 0.1"), "arithmetic has another result");
        assert!(check_strictness(&[("a", &[claim(&format!("shown = 'a#2'\n{mean}"))])]).is_err());
    }

    #[test]
    fn differences_are_counted_by_cause_and_paper() {
        let rows = [
            row("differs", r##","cause":"tcp","shown":"s1-b#3""##),
            row("differs", ""),
            row("reproduced", ""),
            row("differs", r##","beside":"s1-b#3""##),
        ];
        let table = table(&["S0", "S1"], &[("s1-b", &rows)]);
        assert!(table.contains("| another TCP than the paper's | 0 | 1 | 1 | 1 |"), "{table}");
        assert!(table.contains("| cause not known | 0 | 1 | 1 | 0 |"), "{table}");
        assert!(table.ends_with("| all | 0 | 2 | 2 | 1 |\n"), "{table}");
    }
}
