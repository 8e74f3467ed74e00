//! Real QUIC stacks as protocols of the simulator, each with its own controllers (`noq-bbr3`) and with Narrows'
//! (`noq+rrtp`).

pub mod bbr_cases;
pub mod networks;
pub mod noq;
pub mod quic;
pub mod quinn;
pub mod table;

use narrows_base::spec::nearest;
use narrows_sim::Registry;
use std::error::Error;

/// A stack and its protocols.
#[derive(Debug)]
pub struct Stack {
    /// As in `--only`.
    pub name: &'static str,
    /// Names of its protocols.
    pub protocols: fn() -> Vec<String>,
}

/// All stacks.
pub static STACKS: [Stack; 3] = [
    Stack { name: "quinn", protocols: quinn::names },
    Stack { name: "noq", protocols: noq::names },
    Stack {
        name: "simulated",
        protocols: || ["cubic", "bbr", "bbr3", "rrtp"].map(String::from).to_vec(),
    },
];

/// All protocols of the stacks, to be installed.
///
/// # Errors
/// A stack's TLS configuration fails.
pub fn registry() -> Result<Registry, Box<dyn Error>> {
    let entries = quinn::entries()?.into_iter().chain(noq::entries()?);
    Ok(entries.fold(Registry::new(), Registry::foreign))
}

/// The protocols that `--only` names, by name or by stack; of an empty list those that `default` admits.
///
/// # Errors
/// An unknown name, with a suggestion.
pub fn selected(only: &[String], default: fn(&str) -> bool) -> Result<Vec<String>, String> {
    let all: Vec<String> = STACKS.iter().flat_map(|stack| (stack.protocols)()).collect();
    if only.is_empty() {
        return Ok(all.into_iter().filter(|name| default(name)).collect());
    }
    let mut selected = Vec::new();
    for name in only {
        match STACKS.iter().find(|stack| stack.name == name) {
            Some(stack) => selected.extend((stack.protocols)()),
            None if all.contains(name) => selected.push(name.clone()),
            None => {
                let known: Vec<&str> = all.iter().map(String::as_str).collect();
                let near = nearest(name, &known).map(|near| format!("did you mean '{near}'?"));
                let form =
                    "expected quinn, noq, simulated or a protocol such as noq-bbr3, noq+rrtp";
                let hint = near.unwrap_or_else(|| form.into());
                return Err(format!("--only: unknown protocol '{name}'; {hint}"));
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    selected.retain(|name| seen.insert(name.clone()));
    Ok(selected)
}
