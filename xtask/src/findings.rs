//! `experiments/findings.md`: a summary of the experiments written by hand, with every number taken from their results:
//! `{{s1-f6.7#3}}` is the measured value of claim 3 of `s1-f6.7`.

use narrows_experiments::CheckedClaim;

/// The text of `findings.md` with its numbers filled in; `results` finds an experiment's verdicts.
///
/// # Errors
/// A number that no experiment has.
pub fn filled<'a>(
    text: &str,
    results: impl Fn(&str) -> Option<&'a [CheckedClaim]>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out += before;
        let (name, after) = after.split_once("}}").ok_or("findings.md: '{{' without '}}'")?;
        let say = || format!("findings.md: '{name}' is not EXPERIMENT#CLAIM of any experiment");
        let (id, claim) = name.split_once('#').ok_or_else(say)?;
        let number: usize = claim.trim().parse().map_err(|_| say())?;
        let judged = results(id.trim()).ok_or_else(say)?;
        out += &number.checked_sub(1).and_then(|n| judged.get(n)).ok_or_else(say)?.ours;
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(ours: &str) -> Vec<CheckedClaim> {
        let text = format!(
            r#"[{{"claim":"c","stated":"s","accepted":"a","ours":"{ours}","verdict":"reproduced"}}]"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn numbers_come_from_results_and_nowhere_else() {
        let result = one("0.51 of all");
        let find = |id: &str| (id == "s1-f6.7").then_some(result.as_slice());
        assert_eq!(filled("theta {{s1-f6.7#1}}.", find).unwrap(), "theta 0.51 of all.");
        for wrong in ["{{s1-f6.7#2}}", "{{s1-f6.7#0}}", "{{x#1}}", "{{s1-f6.7}}", "{{s1"] {
            assert!(filled(wrong, find).is_err(), "{wrong}");
        }
    }
}
