//! The text of `--help` below the flags, in lines of at most 80 characters, and the list of commands.

use clap::Command;
use std::fmt::Write as _;

/// Commands in groups, in the order of the help.
const NEEDS: [(&str, &[&str]); 6] = [
    ("Compare in simulation", &["compare", "run", "sweep", "attack", "scorecard", "list"]),
    ("Emulate a link", &["link", "relay", "trace"]),
    ("Measure this machine and its paths", &["probe", "speed", "doctor"]),
    ("Transfer files", &["get", "put", "ls", "serve", "key"]),
    ("Carry other programs' traffic", &["tunnel", "media", "kernel"]),
    ("Shell and manual", &["completions", "man"]),
];

/// The list of commands, as far as this build has them.
pub fn by_need(all: &Command) -> String {
    let mut text = String::new();
    for (need, names) in NEEDS {
        let found: Vec<&Command> =
            names.iter().filter_map(|name| all.find_subcommand(name)).collect();
        if !found.is_empty() {
            let _ = writeln!(text, "\n{need}:");
        }
        for command in found {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<12}{about}", command.get_name());
        }
    }
    text
}

/// The command and those below it. Their `-h` ends with the first examples of the text that ends `--help`.
pub fn with_short(command: Command) -> Command {
    let long = command.get_after_help().map(ToString::to_string);
    let examples = long
        .as_deref()
        .and_then(|text| text.split("\n\n").find(|part| part.starts_with("Examples:")));
    let examples = examples.filter(|_| command.get_after_long_help().is_none()).map(str::to_owned);
    let command = match (examples, long) {
        (Some(examples), Some(long)) if examples != long => {
            command.after_help(examples).after_long_help(long)
        }
        _ => command,
    };
    command.mut_subcommands(with_short)
}

pub const EXAMPLES: &str = "\
Examples:
  narrows compare                                 the wireless default, all TCPs
  narrows compare --link 20Mbit/s,30ms,loss=0.1%  your link
  narrows compare --link geo --against reno:4     a satellite, beside four Renos
  narrows run scenario.toml                       any topology
  narrows sweep --vary loss=0.1%..10%:log:8       parameters over a grid
  narrows list protocols                          all protocols

`narrows compare --help` explains how a link is written.";

/// Help of `compare -h`.
pub const COMPARE: &str = "\
A link is RATE,DELAY[,key=value]* or a name; delays are one-way.

Examples:
  narrows compare --link 20Mbit/s,30ms,loss=0.1%
  narrows compare --link lte --protocols cubic,bbr,rrtp
  narrows compare --for calls --against cubic

`narrows compare --help` has all options and the keys of a link.";

/// Help of `compare --help`: the syntax of a link, and examples.
pub fn compare() -> String {
    format!("{COMPARE_LINK}{}{COMPARE_EXAMPLES}", narrows_scenario::keys::help())
}

const COMPARE_LINK: &str = "\
A link is RATE,DELAY[,key=value]* or a name, which may be followed by keys that
replace its own. Delays are one-way. Units are required: 1.5Mbit/s 80ms 30p 45kB
1%; kB is 1000 bytes.
";

const COMPARE_EXAMPLES: &str = "
Examples:
  narrows compare --protocols 'reno,vegas(alpha=1,beta=3),stpd' --seeds 30
  narrows compare --protocols media,rrtp --against cubic
  narrows compare --for calls --against cubic
  narrows compare --link lte --source 'transfer(size=1MB)'
  narrows compare --link 11Mbit/s,5ms --protocols rrtp,rrtp-lasthop \\
      --change 20s:rate=144kbit/s,delay=75ms \\
      --change 40s:rate=11Mbit/s,delay=5ms \\
      --reconfigure 20s:rate=144kbit/s,rtt=150ms \\
      --reconfigure 40s:rate=11Mbit/s,rtt=10ms
  narrows compare --link 1Mbit/s,10ms,queue=5p,access=15Mbit/s/0.5ms..2ms \\
      --flows 4 --stagger 5s
  narrows compare --link geo,loss=0.1% --duration 5min --save geo.toml --out geo";

pub const RUN: &str = "\
A scenario is a TOML file with [[link]] and [[flows]]; docs/scenarios.md
describes it, and `narrows compare --save scenario.toml` writes an example.

Examples:
  narrows run scenario.toml
  narrows run scenario.toml --seeds 20 --out result
  narrows run scenario.toml --reconfigure 30s:files:rate=384kbit/s,rtt=300ms";

pub const SWEEP: &str = "\
Values are separated by commas; commas in parentheses do not split. 1..9:5 means
five values, equally spaced; 0.1Mbit/s..20Mbit/s:log:8 means eight, spaced by a
constant factor. Several --vary result in all combinations; the first one varies
slowest.

With a scenario, NAME is link.NAME.KEY, link.NAME.reverse.KEY, flows.NAME.KEY, a
key at the top or a variable of the file; a parameter inside is
flows.NAME.protocol.alpha or link.NAME.aqm.PARAMETER. NAME=NAME=VALUES varies
several together. With --link, NAME is a key of the link (rate, delay, loss,
queue, aqm, …), protocol, flows, against, reverse, duration, warmup, stagger,
packet, preset, or a parameter as in protocol.alpha. A queue in bdp follows the
rate and the delay of its point.

The same command again runs only the runs that DIR/sweep.journal lacks.

Examples:
  narrows sweep --vary loss=0%,0.1%..10%:log:7 --vary protocol=reno,cubic,stpd
  narrows sweep --link 10Mbit/s,20ms,queue=1bdp --against reno:4 \\
      --vary rate=1Mbit/s..100Mbit/s:log:8 --vary flows=1..32:log:6 \\
      --measure share
  narrows sweep --vary protocol=vegas --vary protocol.alpha=1,2,3 \\
      --vary delay=10ms..300ms:10
  narrows sweep scenarios/dsl-fairness.toml --vary n=1..100:log:8 \\
      --vary link.dsl.rate=0.1Mbit/s..20Mbit/s:log:8 --out surface
  narrows sweep --vary flows=1,2,4,8 --vary rate=5Mbit/s,20Mbit/s --live";

#[cfg(feature = "full")]
pub const COMPLETIONS: &str = "\
Examples:
  narrows completions zsh > ~/.zfunc/_narrows            (a folder of $fpath)
  narrows completions fish > ~/.config/fish/completions/narrows.fish
  narrows completions bash > narrows.bash                (source it)";

#[cfg(feature = "full")]
pub const MAN: &str = "\
Examples:
  narrows man > ~/.local/share/man/man1/narrows.1
  narrows man compare | man -l -";

pub const LIST: &str = "\
Examples:
  narrows list                    everything, one line each
  narrows list links              named links
  narrows list protocols stpd     paper, parameters, validation
  narrows list --papers           the papers' protocols, also as printed
  narrows list losses --json";
