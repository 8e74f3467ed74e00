//! The flags of measurements in real time.

use crate::flags::Flags;

/// Treatment of rows that have been measured before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepeatMode {
    /// They are put aside: a new measurement.
    New,
    /// Rows of this commit are not measured again.
    Resume,
    /// The selected rows are measured again, all others are kept.
    Again,
}

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// Links by name; all if `None`.
    pub links: Option<Vec<String>>,
    /// Protocols, or senders; the usual ones if `None`.
    pub protocols: Option<Vec<String>>,
    /// Number of seeds; the first is 1.
    pub runs: u64,
    /// Durations are multiplied by this.
    pub shorter: f64,
    pub mode: RepeatMode,
    /// Whether rows of other commits count too.
    pub any_commit: bool,
}

/// Flags, for the help.
pub const KNOWN: &str = "--links A,B, --protocols A,B, --runs N, --shorter F, --resume, --again, \
                         --any-commit";

impl MeasureOptions {
    /// Reads the flags. Links and protocols must be in these lists; an empty list of protocols permits any.
    pub fn read(
        args: &[String],
        links: &[&str],
        protocols: &[&str],
    ) -> Result<MeasureOptions, String> {
        let mut ask = MeasureOptions {
            links: None,
            protocols: None,
            runs: 3,
            shorter: 1.0,
            mode: RepeatMode::New,
            any_commit: false,
        };
        let mut flags = Flags::new(args);
        while let Some(flag) = flags.advance() {
            match flag {
                "--links" => ask.links = Some(chosen(flag, flags.list()?, links)?),
                "--protocols" => ask.protocols = Some(chosen(flag, flags.list()?, protocols)?),
                "--runs" | "--seeds" => ask.runs = flags.number(1..=1000)?,
                "--shorter" => ask.shorter = flags.number(0.01..=10.0)?,
                "--resume" => ask.mode = RepeatMode::Resume,
                "--again" => ask.mode = RepeatMode::Again,
                "--any-commit" => ask.any_commit = true,
                _ => return flags.unknown(KNOWN),
            }
        }
        Ok(ask)
    }

    /// Whether a link is chosen.
    pub fn link(&self, name: &str) -> bool {
        self.links.as_ref().is_none_or(|l| l.iter().any(|l| l == name))
    }

    /// Whether a protocol is chosen.
    pub fn protocol(&self, name: &str) -> bool {
        self.protocols.as_ref().is_none_or(|p| p.iter().any(|p| p == name))
    }
}

fn chosen(flag: &str, list: Vec<String>, known: &[&str]) -> Result<Vec<String>, String> {
    match list.iter().find(|w| !known.is_empty() && !known.contains(&w.as_str())) {
        Some(odd) => Err(format!("{flag} '{odd}': there are {}", known.join(", "))),
        None => Ok(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<MeasureOptions, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        MeasureOptions::read(&args, &["i", "iv"], &[])
    }

    #[test]
    fn flags_are_read_and_wrong_ones_named() {
        let ask = read("--links iv --protocols rrtp,rrtp+bbr --resume").unwrap();
        assert!(ask.link("iv") && !ask.link("i"));
        assert_eq!(ask.protocols.unwrap(), ["rrtp", "rrtp+bbr"]);
        assert_eq!((ask.runs, ask.mode), (3, RepeatMode::Resume));
        for (line, word) in [
            ("--links v", "there are i, iv"),
            ("--runs", "wants a value"),
            ("--runs 0", "1 to 1000"),
            ("--shorter NaN", "0.01 to 10"),
            ("--kept x", "'--kept' is not known"),
        ] {
            let why = read(line).unwrap_err();
            assert!(why.contains(word), "{line}: {why}");
        }
    }
}
