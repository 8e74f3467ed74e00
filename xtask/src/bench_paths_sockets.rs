//! The rows of `cargo xtask bench paths sockets`: one file through `narrows get` over two emulated lines. The times depend
//! on the machine, so the rows are only for an idle one.

use crate::command::{cargo, target};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds of a transfer at the full rate.
const TRANSFER_S: f64 = 20.0;

/// The two lines of a row.
pub struct SocketRow<'a> {
    /// The name that the table shows.
    pub name: &'a str,
    /// Keys of each line in a scenario file.
    pub lines: [String; 2],
    /// Sum of rate times (1 - loss), in Mbit/s.
    pub capacity: f64,
}

/// Where the rows run.
pub struct SocketBench {
    folder: PathBuf,
    program: String,
}

impl SocketBench {
    /// Builds the command, and prints the head of the table.
    pub fn new() -> Result<SocketBench, String> {
        cargo(&["build", "--release", "--locked", "-p", "narrows-cli", "--features", "full"])?;
        let target = std::path::absolute(target()).map_err(|e| e.to_string())?;
        let program = target.join("release/narrows").display().to_string();
        let folder = target.join("bench-paths");
        println!("| lines | share of the sum | first line's bytes, % |\n|---|---|---|");
        Ok(SocketBench { folder, program })
    }

    /// Measures a row.
    pub fn row(&self, row: &SocketRow<'_>) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.folder.display());
        let [first, second] = &row.lines;
        let line = |name: &str, keys: &str| {
            format!("[[link]]\nname = \"{name}\"\nfrom = \"server\"\nto = \"home\"\n{keys}\n")
        };
        let flow = "[[flows]]\nprotocol = \"rrtp\"\nfrom = \"server\"\nto = \"home\"\n";
        let topology =
            format!("{}{}{flow}paths = [[\"a\"], [\"b\"]]\n", line("a", first), line("b", second));
        // A file of an earlier row would be resumed.
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir_all(self.folder.join("www")).map_err(failed)?;
        let scenario = self.folder.join("lines.toml");
        std::fs::write(&scenario, topology).map_err(failed)?;
        let bytes = (row.capacity * TRANSFER_S / 8.0 * 1e6) as u64;
        let file = std::fs::File::create(self.folder.join("www/f")).map_err(failed)?;
        file.set_len(bytes).map_err(failed)?;
        let both = self.get(&scenario)?;
        let mbps = both["Mbit/s"].as_f64().unwrap_or_default();
        let carried = |n: usize| both["paths"][n]["bytes"].as_f64().unwrap_or_default();
        println!(
            "| {} | {:.2} | {:.0} |",
            row.name,
            mbps / row.capacity,
            100.0 * carried(0) / (carried(0) + carried(1)).max(1.0)
        );
        Ok(())
    }

    /// The result of `narrows get --path all` as JSON.
    fn get(&self, scenario: &Path) -> Result<Value, String> {
        let SocketBench { folder, program } = self;
        let at = folder.display();
        let server =
            format!("server=HOME={at} exec {program} serve {at}/www --listen 0.0.0.0:47470");
        let home = format!(
            "home=HOME={at} exec {program} get --json --path all -o - rrtp://server/f >{at}/out 2>{at}/err"
        );
        let mut command = Command::new(program);
        command
            .args(["link", "--quiet", "--at", &server, "--at", &home, "--scenario"])
            .arg(scenario);
        let done = command.output().map_err(|e| format!("{program}: {e}"))?;
        let said = std::fs::read_to_string(folder.join("err")).unwrap_or_default();
        let result = said.lines().find_map(|line| serde_json::from_str(line).ok());
        result.ok_or_else(|| format!("{said}{}", String::from_utf8_lossy(&done.stderr)))
    }
}
