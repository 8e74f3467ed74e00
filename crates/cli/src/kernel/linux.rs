//! What `narrows kernel` does on Linux.

use super::{KernelAgent, KernelGuard, KernelLoad, KernelRun, KernelStatus, KernelUnload};
use crate::failure::Failure;
use crate::terminal::{STOP, catch_interrupt, note, print, print_json};
use narrows_kernel::instance::{self, Instance, Registration};
use narrows_kernel::status::{DecidedBy, Status};
use narrows_kernel::{Agent, Cgroup, Choice, Error, Programs};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Input(format!("kernel: {e}"))
    }
}

/// A controller and its name in the kernel.
fn chosen(controller: &str, name: Option<&str>) -> Result<(Choice, String), Failure> {
    let choice = Choice::new(controller)?;
    let name = match name {
        Some(name) => Choice::checked_name(name)?.to_string(),
        None => choice.default_name(),
    };
    Ok((choice, name))
}

/// Registers a controller and begins to answer.
fn start(
    programs: &Programs,
    choice: &Choice,
    name: &str,
) -> Result<(Agent, Registration), Failure> {
    let loaded = programs.register(name)?;
    let registration = Registration::new(Instance {
        name: name.to_string(),
        controller: choice.text().to_string(),
        pid: i32::try_from(std::process::id()).unwrap_or(0),
        map_ids: loaded.map_ids,
        system_before: None,
    })?;
    Ok((Agent::start(loaded, choice.clone())?, registration))
}

/// `narrows kernel run`: the congestion control is this run's own, so that no other run's end touches it.
pub fn run(a: &KernelRun) -> Result<(), Failure> {
    let (choice, mut name) = chosen(&a.controller, a.name.as_deref())?;
    if a.name.is_none() && is_taken(&name) {
        let pid = std::process::id().to_string();
        name = format!("{}_{pid}", &name[..name.len().min(14 - pid.len())]);
    }
    let programs = Programs::prepare()?;
    let cgroup = Cgroup::create()?;
    let (agent, registration) = start(&programs, &choice, &name)?;
    let chooser = programs.choose(cgroup.directory(), &name)?;
    let (program, arguments) = a.words.split_first().ok_or_else(|| {
        Failure::Input("kernel run: no command: narrows kernel run NAME -- COMMAND".into())
    })?;
    // Ctrl-C is the command's, which the terminal tells, too.
    catch_interrupt();
    let child = cgroup.within(|| Command::new(program).args(arguments).spawn())?;
    let child = child.map_err(|e| {
        Failure::Input(format!(
            "kernel run: '{}' cannot be started: {e}",
            program.to_string_lossy()
        ))
    });
    let ended = child.and_then(|mut child| {
        child.wait().map_err(|e| Failure::Outside(format!("kernel run: waiting for it: {e}")))
    });
    drop((chooser, agent, registration, cgroup));
    ended.and_then(passed_on)
}

fn is_taken(name: &str) -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let all = std::fs::read_to_string(path).unwrap_or_default();
    all.split_whitespace().any(|n| n == name)
}

/// The command's exit code, or as a shell tells of a signal.
fn passed_on(status: ExitStatus) -> Result<(), Failure> {
    let code = status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap_or(1);
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

/// `narrows kernel load`: an agent in the background for each.
pub fn load(a: &KernelLoad) -> Result<(), Failure> {
    if a.controllers.len() > 1 && (a.name.is_some() || a.system) {
        let flag = if a.name.is_some() { "--as" } else { "--system" };
        return Err(Failure::Input(format!("kernel load: {flag} is for one controller")));
    }
    // All are looked at before any is loaded.
    let all: Vec<(Choice, String)> = a
        .controllers
        .iter()
        .map(|controller| chosen(controller, a.name.as_deref()))
        .collect::<Result<_, _>>()?;
    for (choice, name) in &all {
        background(choice.text(), name, a.system)?;
        print(&format!("{name}: {}\n", choice.text()))?;
    }
    Ok(())
}

fn background(controller: &str, name: &str, system: bool) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::Outside(format!("kernel load: {e}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["kernel", "agent", controller, name]);
    if system {
        command.arg("--system");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(failed)?;
    }
    match line.trim() {
        READY => Ok(()),
        why => {
            let _ = child.wait();
            let why = if why.is_empty() { "the agent has not started" } else { why };
            Err(Failure::Input(why.to_string()))
        }
    }
}

/// What an agent writes when it answers.
const READY: &str = "ready";

/// The agent that `load` starts. It tells by its standard output whether it began.
pub fn agent(a: &KernelAgent) -> Result<(), Failure> {
    let begun = begin(a);
    match &begun {
        Ok(_) => print(&format!("{READY}\n"))?,
        Err(Failure::Input(line) | Failure::Outside(line)) => print(&format!("{line}\n"))?,
        Err(_) => {}
    }
    let (agent, registration) = begun?;
    while !STOP.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop((agent, registration));
    Ok(())
}

fn begin(a: &KernelAgent) -> Result<(Agent, Registration), Failure> {
    let (choice, name) = chosen(&a.controller, Some(&a.name))?;
    catch_interrupt();
    let (agent, mut registration) = start(&Programs::prepare()?, &choice, &name)?;
    if a.system {
        registration.become_system()?;
        let program = std::env::current_exe().map_err(|e| Failure::Outside(e.to_string()))?;
        let mut guard = Command::new(program);
        guard.args(["kernel", "guard", &name]).process_group(0);
        guard.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        guard.spawn().map_err(|e| Failure::Outside(e.to_string()))?;
    }
    Ok((agent, registration))
}

/// Waits for the agent's end, to undo what it did to the system even if it was killed.
pub fn guard(a: &KernelGuard) -> Result<(), Failure> {
    Ok(Instance::guard(&a.name)?)
}

/// `narrows kernel unload`.
pub fn unload(a: &KernelUnload) -> Result<(), Failure> {
    let all = Instance::all();
    let wanted: Vec<&Instance> = if a.names.is_empty() {
        all.iter().collect()
    } else {
        let find = |name: &String| {
            let is_it = |i: &&Instance| i.name == *name || i.controller == *name;
            all.iter().find(is_it).ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
                let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
                Failure::Input(format!("kernel unload: '{name}' is not loaded; loaded: {names}"))
            })
        };
        a.names.iter().map(find).collect::<Result<_, _>>()?
    };
    if wanted.is_empty() {
        note("nothing is loaded");
    }
    wanted.into_iter().try_for_each(|i| Ok(i.unload()?))
}

/// `narrows kernel status`.
pub fn status(a: &KernelStatus) -> Result<(), Failure> {
    let all = Instance::all();
    let mut values = Vec::new();
    let mut text = String::new();
    for i in &all {
        let living = i.agent() == instance::Agent::Living;
        match i.status() {
            Ok(status) => {
                values.push(to_json(i, living, &status));
                text += &table(i, living, &status);
            }
            Err(Error::NotPermitted) => return Err(Error::NotPermitted.into()),
            // Killed, and without a connection: nothing is left but its file.
            Err(_) => text += &format!("{}: its agent was killed; nothing is left of it\n", i.name),
        }
    }
    if a.json {
        return print_json(&Value::Array(values));
    }
    if all.is_empty() {
        note("nothing is loaded");
    }
    print(&text)
}

fn word(mode: DecidedBy) -> &'static str {
    match mode {
        DecidedBy::New => "new",
        DecidedBy::Controlled => "controller",
        DecidedBy::Fallback => "reno (fallback)",
    }
}

fn to_json(i: &Instance, living: bool, s: &Status) -> Value {
    let connections: Vec<Value> = s
        .connections
        .iter()
        .map(|c| {
            json!({
                "number": c.number, "decided_by": word(c.decided_by), "cwnd": c.cwnd,
                "rate_bytes_per_s": c.rate, "srtt_s": f64::from(c.srtt_us) * 1e-6,
                "delivered_segments": c.delivered, "fallbacks": c.fallbacks, "mss": c.mss,
            })
        })
        .collect();
    json!({
        "name": i.name, "controller": i.controller, "pid": i.pid, "agent_lives": living,
        "system": i.system_before.is_some(), "connections": connections,
        "connections_seen": s.seen, "connections_without_slot": s.without_slot,
        "records": s.statistics.records(), "batches": s.statistics.batches(),
        "lost_records": s.lost_records, "fallbacks": s.fallbacks,
        "records_per_s": s.statistics.records_per_s(),
        "delay_p50_s": s.statistics.delay_s(0.5), "delay_p99_s": s.statistics.delay_s(0.99),
        "delay_max_s": s.statistics.max_s(),
    })
}

/// Most connections that the table shows.
const MAX_LINES: usize = 40;

fn table(i: &Instance, living: bool, s: &Status) -> String {
    let agent = if living {
        format!("process {}", i.pid)
    } else {
        "its process was killed: connections go on as Reno by themselves".into()
    };
    let system = if i.system_before.is_some() { "; the system's congestion control" } else { "" };
    let t = &s.statistics;
    let mut out = format!(
        "{}: {}, {agent}{system}\n  {} connections now, {} so far, {} of them without a slot\n  {} records in {} \
         batches, {:.0} per second, {} lost; {} fallbacks\n  answered within {:.3} ms (p50), {:.3} ms (p99), {:.3} ms \
         (max)\n",
        i.name,
        i.controller,
        s.connections.len(),
        s.seen + s.without_slot,
        s.without_slot,
        t.records(),
        t.batches(),
        t.records_per_s(),
        s.lost_records,
        s.fallbacks,
        t.delay_s(0.5) * 1e3,
        t.delay_s(0.99) * 1e3,
        t.max_s() * 1e3,
    );
    if !s.connections.is_empty() {
        out += &format!(
            "  {:>10}  {:<16}{:>8}{:>14}{:>10}{:>11}\n",
            "connection", "decided by", "cwnd", "pacing", "RTT", "fallbacks"
        );
    }
    for c in s.connections.iter().take(MAX_LINES) {
        let rate = match c.rate {
            0 => "-".to_string(),
            rate => format!("{:.2} Mbit/s", rate as f64 * 8e-6),
        };
        out += &format!(
            "  {:>10}  {:<16}{:>8}{rate:>14}{:>7.2} ms{:>11}\n",
            c.number,
            word(c.decided_by),
            c.cwnd,
            f64::from(c.srtt_us) * 1e-3,
            c.fallbacks
        );
    }
    if s.connections.len() > MAX_LINES {
        out += &format!("  … and {} more\n", s.connections.len() - MAX_LINES);
    }
    out
}
