//! Prints the table of `docs/stacks.md`: stacks and their controllers over links.
//!
//! ```sh
//! cargo run --release -p narrows-stacks -- [--link LINK]... [--seconds S] [--bytes N] [--seed N] [--only NAME,NAME]
//! ```

use narrows_stacks::{STACKS, Test};
use std::process::ExitCode;
use std::time::Duration;

/// Links of a run without `--link`.
const LINKS: [&str; 6] = [
    "20Mbit/s,25ms",
    "20Mbit/s,25ms,loss=1%",
    "20Mbit/s,25ms,loss=5%",
    "20Mbit/s,25ms,loss=10%",
    "20Mbit/s,25ms,jitter=20ms",
    "20Mbit/s,25ms,reorder=5%/10ms",
];

struct Options {
    links: Vec<String>,
    only: Vec<String>,
    seconds: f64,
    bytes: u64,
    seed: u64,
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { links: Vec::new(), only: Vec::new(), seconds: 15.0, bytes: u64::MAX, seed: 1 };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let wrong = || format!("{flag}: '{value}' is not a positive number");
        match flag.as_str() {
            "--link" => options.links.push(value),
            "--only" => options.only.extend(value.split(',').map(String::from)),
            "--seconds" => {
                let seconds = value.parse().ok().filter(|s| (0.001..=1e6).contains(s));
                options.seconds = seconds.ok_or_else(wrong)?;
            }
            "--bytes" => options.bytes = value.parse().map_err(|_| wrong())?,
            "--seed" => options.seed = value.parse().map_err(|_| wrong())?,
            _ => {
                let known = "--link, --seconds, --bytes, --seed, --only";
                return Err(format!("unknown flag '{flag}': expected one of {known}"));
            }
        }
    }
    if options.links.is_empty() {
        options.links = LINKS.map(String::from).to_vec();
    }
    Ok(options)
}

/// One row per controller, one column per link: Mbit/s and the mean smoothed RTT in ms.
fn print(options: &Options) -> Result<(), String> {
    let heads: Vec<String> = options.links.iter().map(|link| format!(" `{link}` |")).collect();
    println!("| stack | controller |{}", heads.concat());
    println!("|---|---|{}", "---|".repeat(heads.len()));
    for stack in &STACKS {
        for controller in (stack.controllers)() {
            let is_named = |only: &String| *only == controller || only == stack.name;
            if !options.only.is_empty() && !options.only.iter().any(is_named) {
                continue;
            }
            let mut row = format!("| {} | {controller} |", stack.name);
            for link in &options.links {
                let test = Test {
                    link: link.clone(),
                    bytes: options.bytes,
                    limit: Duration::from_secs_f64(options.seconds),
                    seed: options.seed,
                };
                let outcome = (stack.run)(&controller, &test);
                let o = outcome.map_err(|e| format!("{} {controller}: {e}", stack.name))?;
                let rtt_ms = o.rtt.as_secs_f64() * 1e3;
                row += &format!(" {:.2}, {rtt_ms:.0} |", o.goodput_bps / 1e6);
            }
            println!("{row}");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match options().and_then(|options| print(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("narrows-stacks: {e}");
            ExitCode::from(2)
        }
    }
}
