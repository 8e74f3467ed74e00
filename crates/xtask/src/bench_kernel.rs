//! `cargo xtask bench kernel`: controllers in the kernel's TCP over emulated links, beside their simulation; the delay
//! of their answers, and the cost. Root only.

mod cost;
mod many;
mod runs;

use crate::flags::Flags;
use narrows_kernel::{Agent, Choice};
use std::time::Instant;

const KNOWN: &str =
    "--only goals,table,delay,cost,many, --controllers A,B, --seconds N, --at-once N, --write";

/// Options of the command.
struct KernelBenchOptions {
    parts: Vec<String>,
    controllers: Option<Vec<String>>,
    seconds: f64,
    at_once: usize,
    write: bool,
}

impl KernelBenchOptions {
    fn read(args: &[String]) -> Result<KernelBenchOptions, String> {
        let parts = ["goals", "table", "delay", "cost", "many"].map(String::from).to_vec();
        let mut ask = KernelBenchOptions {
            parts,
            controllers: None,
            seconds: 12.0,
            at_once: 5,
            write: false,
        };
        let mut flags = Flags::new(args);
        while let Some(flag) = flags.advance() {
            match flag {
                "--only" => ask.parts = flags.list()?,
                "--controllers" => ask.controllers = Some(flags.list()?),
                "--seconds" => ask.seconds = f64::from(flags.number(1..=600u32)?),
                "--at-once" => ask.at_once = flags.number(1..=600)?,
                "--write" => ask.write = true,
                _ => return flags.unknown(KNOWN),
            }
        }
        Ok(ask)
    }
    fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|p| p == part)
    }
}

/// A controller's name in the kernel while this lives.
pub struct LoadedController {
    pub name: String,
    pub agent: Agent,
}

impl LoadedController {
    pub fn load(controller: &str) -> Result<LoadedController, String> {
        let choice = Choice::new(controller).map_err(|e| e.to_string())?;
        let (name, agent) = Agent::load(choice).map_err(|e| e.to_string())?;
        Ok(LoadedController { name, agent })
    }
}

/// `bench kernel`.
pub fn run(args: &[String]) -> Result<(), String> {
    let ask = KernelBenchOptions::read(args)?;
    let begun = Instant::now();
    let mut sections = Vec::new();
    let mut part = |name: &str, measure: &dyn Fn(&KernelBenchOptions) -> Result<String, String>| {
        if !ask.has(name) {
            return Ok(());
        }
        let text = measure(&ask)?;
        eprintln!("{text}");
        sections.push(text);
        Ok::<(), String>(())
    };
    part("goals", &runs::goals)?;
    part("table", &runs::table)?;
    part("delay", &runs::delay)?;
    part("cost", &|_| cost::section())?;
    part("many", &|_| many::section())?;
    eprintln!("{:.0} s", begun.elapsed().as_secs_f64());
    if ask.write {
        crate::section::write("docs/kernel.md", "measured", &sections.join("\n"))
    } else {
        Ok(())
    }
}
