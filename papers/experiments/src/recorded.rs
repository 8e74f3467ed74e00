//! Measurements that were taken once and are kept in the tree: a table of comma-separated values, a row for each
//! run.

use std::path::Path;

/// The values of a column in the rows named `row`, with `*` for the number of the run, in the order of these numbers.
///
/// # Errors
/// The file cannot be read, the column or row does not exist, or a value is not a number.
pub fn values(file: &Path, row: &str, column: &str) -> Result<Vec<f64>, String> {
    let say = |e: String| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| say(e.to_string()))?;
    of(&text, row, column).map_err(say)
}

fn of(text: &str, row: &str, column: &str) -> Result<Vec<f64>, String> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let at = names.iter().position(|name| *name == column).filter(|at| *at > 0);
    let at = at.ok_or_else(|| format!("there is no column '{column}' but {}", names.join(", ")))?;
    let mut found: Vec<(u64, f64)> = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let Some(run) = number_of(fields[0], row) else { continue };
        let value = fields.get(at).and_then(|v| v.parse().ok());
        found.push((run, value.ok_or_else(|| format!("'{line}' has no {column}"))?));
    }
    found.sort_by_key(|f| f.0);
    match found.is_empty() {
        true => Err(format!("there is no row '{row}'")),
        false => Ok(found.into_iter().map(|f| f.1).collect()),
    }
}

/// The number of the run, if the name is that of the row; 0 for a row without `*`.
fn number_of(name: &str, row: &str) -> Option<u64> {
    let Some((before, after)) = row.split_once('*') else {
        return (name == row).then_some(0);
    };
    name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_name_and_ordered_by_run() {
        let text = "case,seconds,bytes\na-2,5,1\na-1,4,1\na-1-2,9,1\nab-1,7,1\nb,3,1\n";
        assert_eq!(of(text, "a-*", "seconds"), Ok(vec![4.0, 5.0]), "and no second sender's");
        assert_eq!(of(text, "a-*-2", "seconds"), Ok(vec![9.0]));
        assert_eq!(of(text, "b", "bytes"), Ok(vec![1.0]));
        for (row, column) in [("c-*", "seconds"), ("a-*", "minutes"), ("a-*", "case")] {
            assert!(of(text, row, column).is_err(), "{row} {column}");
        }
        assert!(of("case,seconds\na-1,\n", "a-*", "seconds").unwrap_err().contains("a-1,"));
    }
}
