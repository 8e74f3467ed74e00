//! The flag that chooses the local ends of a connection, for every command that opens connections with several paths.

use crate::failure::Failure;
use crate::terminal::note;
use clap::Args;
use narrows_base::SpecError;
use narrows_net::LocalPath;
use narrows_peers::path_choice::{PathChoice, PathChoices};
use narrows_transport::connection::MAX_PATHS;
use std::str::FromStr;

/// Local ends of a connection.
#[derive(Args, Clone, Debug, Default)]
pub struct PathArgs {
    /// Use this interface or local address, as eth0 or 192.0.2.1, or `all` interfaces with a default route; give it
    /// several times to use all of them at once (rrtp). eth0=0.5: at most half of what a path of weight 1 carries;
    /// eth0=standby: only while no other one answers; eth0:quota=2GB: at most so many bytes, of both directions
    #[arg(long = "path", value_name = "IFACE|ADDRESS|all")]
    pub paths: Vec<PathArg>,
}

/// Bytes of data that one `--path` has carried.
#[derive(Clone, serde::Serialize)]
pub struct CarriedBytes {
    pub path: String,
    pub bytes: u64,
}

/// Each path's share of the bytes, as in `eth0 62%, wwan0 38%`; empty without `--path`.
pub fn shares(all: &[CarriedBytes]) -> String {
    let sum = all.iter().map(|path| path.bytes).sum::<u64>().max(1) as f64;
    let share = |CarriedBytes { path, bytes }: &CarriedBytes| {
        format!("{path} {:.0}%", *bytes as f64 * 100.0 / sum)
    };
    all.iter().map(share).collect::<Vec<_>>().join(", ")
}

/// A value of `--path`.
#[derive(Clone, Debug)]
pub enum PathArg {
    /// Every interface with a default route ([`LocalPath::all`]).
    All,
    /// This interface or address, with its options.
    Of(PathChoice),
}

impl FromStr for PathArg {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<PathArg, SpecError> {
        if let Some(options) = text.strip_prefix("all")
            && options.starts_with(['=', ':'])
        {
            let line = "all takes no options: name each path to give it one";
            return Err(SpecError::new(line));
        }
        Ok(if text == "all" { PathArg::All } else { PathArg::Of(PathChoice::read(text)?) })
    }
}

impl PathArgs {
    /// Checks that a side that waits for its peer has no paths of its own.
    ///
    /// # Errors
    /// There is a `--path`, but no URL.
    pub fn check_connects<T>(&self, url: Option<&T>) -> Result<(), Failure> {
        if self.paths.is_empty() || url.is_some() {
            return Ok(());
        }
        Err(Failure::Input("--path is for the side that connects: give the peer's URL".into()))
    }

    /// The paths, without those beyond the limit of `all`; a line is printed about these.
    ///
    /// # Errors
    /// There is none, or there are too many or equal ones.
    pub fn named(&self) -> Result<PathChoices, Failure> {
        let all = self.choices()?;
        if !all.is_empty() && all.iter().all(|path| path.is_standby) {
            let line = "--path: one of the paths must not be on standby";
            return Err(Failure::Input(line.into()));
        }
        Ok(PathChoices { all, note: Some(|line| note(&format!("narrows: {line}"))) })
    }

    fn choices(&self) -> Result<Vec<PathChoice>, Failure> {
        let input = |line: String| Err(Failure::Input(line));
        if let [PathArg::All] = self.paths[..] {
            let mut all = LocalPath::all();
            if all.is_empty() {
                let line = "--path all: no interface is up with an address; name one";
                return Err(Failure::Outside(line.into()));
            }
            for path in all.drain(all.len().min(MAX_PATHS.into())..) {
                note(&format!("narrows: --path {path} is left out: at most {MAX_PATHS} paths"));
            }
            return Ok(all.into_iter().map(PathChoice::from).collect());
        }
        if self.paths.len() > MAX_PATHS.into() {
            return input(format!("--path: at most {MAX_PATHS} paths"));
        }
        let mut named: Vec<PathChoice> = Vec::new();
        for path in &self.paths {
            match path {
                PathArg::All => return input("--path all: no other --path is needed".into()),
                PathArg::Of(path) if named.iter().any(|other| other.local == path.local) => {
                    return input(format!("--path {}: given twice", path.local));
                }
                PathArg::Of(path) => named.push(path.clone()),
            }
        }
        Ok(named)
    }
}
