//! Tables of named columns, written as CSV and as Parquet.

#[cfg(feature = "parquet")]
mod parquet;

use std::fmt::Write as _;

/// Values of a column.
#[derive(Clone, Debug)]
pub enum Values {
    /// UTF-8 strings.
    Text(Vec<String>),
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Numbers; NaN for an absent value.
    Number(Vec<f64>),
}

/// A table: columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Columns(pub Vec<(String, Values)>);

impl Columns {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.0.first().map_or(0, |c| match &c.1 {
            Values::Text(x) => x.len(),
            Values::Whole(x) => x.len(),
            Values::Number(x) => x.len(),
        })
    }

    /// As CSV; an absent number is empty.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        for (i, (name, _)) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(out, "{comma}{}", quoted(name));
        }
        out.push('\n');
        for row in 0..self.rows() {
            for (i, (_, values)) in self.0.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let _ = match values {
                    Values::Text(x) => write!(out, "{}", quoted(&x[row])),
                    Values::Whole(x) => write!(out, "{}", x[row]),
                    Values::Number(x) if x[row].is_finite() => write!(out, "{}", x[row]),
                    Values::Number(_) => Ok(()),
                };
            }
            out.push('\n');
        }
        out
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn table() -> Columns {
        Columns(vec![
            ("protocol".into(), Values::Text(vec!["vegas(alpha=1,beta=3)".into(), "a\"b".into()])),
            ("seed".into(), Values::Whole(vec![1, 2])),
            ("theta".into(), Values::Number(vec![f64::NAN, 0.1 + 0.2])),
        ])
    }

    #[test]
    fn csv_quotes_commas_and_omits_non_numbers() {
        let expected =
            "protocol,seed,theta\n\"vegas(alpha=1,beta=3)\",1,\n\"a\"\"b\",2,0.30000000000000004\n";
        assert_eq!(table().csv(), expected);
    }
}
