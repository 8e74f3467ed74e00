//! `narrows kernel` on Linux.

use super::args::{KernelAgent, KernelGuard, KernelLoad, KernelRun, KernelStatus, KernelUnload};
use super::on_page::KernelPage;
use crate::failure::Failure;
use crate::terminal::{note, print, print_json};
use narrows_emulator::{ReceivedSignal, SignalReceiver, with_all_signals};
use narrows_kernel::instance::{self, Instance, Registration};
use narrows_kernel::status::{ControlStatus, DecidedBy};
use narrows_kernel::{Agent, AgentTap, BpfPrograms, Cgroup, Choice, Error, Loaded, Native};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Input(format!("kernel: {e}"))
    }
}

/// A congestion controller for the kernel's TCP.
enum KernelController {
    /// A controller that runs in user space.
    Asked(Choice),
    /// A controller that runs entirely inside the kernel.
    Native(Native),
}

impl KernelController {
    fn text(&self) -> &str {
        match self {
            KernelController::Asked(choice) => choice.text(),
            KernelController::Native(native) => native.text(),
        }
    }
}

/// A controller, and its name in the kernel.
fn chosen(
    controller: &str,
    name: Option<&str>,
    native: bool,
) -> Result<(KernelController, String), Failure> {
    // Checked first, since this error is more specific than that of `Choice`.
    let native = if native { Some(Native::new(controller)?) } else { None };
    let choice = Choice::new(controller).map_err(|e| hinted(controller, e))?;
    let ecn = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").unwrap_or_default();
    if choice.goes_by_marks() && ecn.trim() != "1" {
        note(&format!(
            "{} goes by routers' marks, of which none come unless both ends have sysctl net.ipv4.tcp_ecn=1",
            choice.text()
        ));
    }
    let name = match name {
        Some(name) => Choice::checked_name(name)?.to_string(),
        None => choice.default_name(),
    };
    Ok((native.map_or(KernelController::Asked(choice), KernelController::Native), name))
}

/// An error for an unknown controller. If the name is that of a protocol, it names the protocol's controller.
fn hinted(text: &str, e: Error) -> Failure {
    let name = text.split('(').next().unwrap_or_default();
    match (narrows_congestion::find(name), narrows_sim::protocol::find(name)) {
        (Err(_), Ok(protocol)) => Failure::Input(format!(
            "kernel: {name} is a protocol with the controller {0}: narrows kernel run {0}",
            protocol.controller
        )),
        _ => e.into(),
    }
}

/// A congestion control that is registered in the kernel while this lives.
struct Started {
    registration: Registration,
    _agent: Option<Agent>,
    _native: Option<Loaded>,
}

/// Registers a controller and, for one in user space, starts its agent. With `lasting`, a native one remains registered
/// afterwards.
fn start(
    programs: &BpfPrograms,
    controller: &KernelController,
    name: &str,
    lasting: bool,
    tap: Option<Arc<dyn AgentTap>>,
) -> Result<Started, Failure> {
    let loaded = match controller {
        KernelController::Asked(_) => programs.register(name)?,
        KernelController::Native(native) => programs.register_native(name, native, lasting)?,
    };
    let registered = Registration::new(Instance {
        name: name.to_string(),
        controller: controller.text().to_string(),
        pid: i32::try_from(std::process::id()).unwrap_or(0),
        map_ids: loaded.map_ids,
        native: loaded.lasting,
        system_before: None,
    });
    let registration = match registered {
        Ok(registration) => registration,
        Err(e) => {
            loaded.lasting.map_or(Ok(()), instance::unregister)?;
            return Err(e.into());
        }
    };
    let (agent, native) = match controller {
        KernelController::Asked(choice) => {
            (Some(Agent::watched(loaded, choice.clone(), tap)?), None)
        }
        KernelController::Native(_) => (None, Some(loaded)),
    };
    Ok(Started { registration, _agent: agent, _native: native })
}

/// `narrows kernel run`. It registers a congestion control of its own, so that the end of another run has no effect on
/// it.
pub fn run(a: &KernelRun) -> Result<(), Failure> {
    let (controller, mut name) = chosen(&a.controller, a.name.as_deref(), a.native)?;
    if a.name.is_none() && is_taken(&name) {
        let pid = std::process::id().to_string();
        name = format!("{}_{pid}", &name[..name.len().min(14 - pid.len())]);
    }
    let (program, arguments) = a.words.split_first().ok_or_else(|| {
        Failure::Input("kernel run: no command: narrows kernel run NAME -- COMMAND".into())
    })?;
    // Before any thread is started, so that no thread receives signals.
    let signals = SignalReceiver::take()?;
    let programs = BpfPrograms::prepare()?;
    let cgroup = Cgroup::create()?;
    let page = KernelPage::open(&a.live, controller.text())?;
    let tap = page.as_ref().map(KernelPage::tap);
    let started = start(&programs, &controller, &name, false, tap)?;
    let chooser = programs.choose(cgroup.directory(), &name)?;
    let mut command = Command::new(program);
    with_all_signals(command.args(arguments));
    let child = cgroup.within(|| command.spawn())?;
    let ended = match child {
        Ok(mut child) => attend(&signals, &cgroup, &mut child),
        Err(e) => {
            let program = program.to_string_lossy();
            Err(Failure::Input(match e.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("kernel run: {program}: command not found")
                }
                _ => format!("kernel run: {program} cannot be started: {e}"),
            }))
        }
    };
    drop((chooser, started, cgroup, page));
    ended.and_then(passed_on)
}

/// Waits for the command's end, and passes on signals that only this process received; those of the terminal reach all
/// processes. If the command does not end after a request to terminate, all its processes are killed after a while.
fn attend(
    signals: &SignalReceiver,
    cgroup: &Cgroup,
    child: &mut Child,
) -> Result<ExitStatus, Failure> {
    let failed = |e| Failure::Outside(format!("kernel run: waiting for the command: {e}"));
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            if asked.is_some() {
                cgroup.kill();
            }
            return Ok(status);
        }
        let patience = asked.map_or(PATIENCE, |at| PATIENCE.saturating_sub(at.elapsed()));
        if let Some(ReceivedSignal::Stop { signal, everybody: false }) = signals.wait(patience) {
            cgroup.signal(signal);
            if signal == TERMINATE || signal == HANG_UP {
                asked.get_or_insert_with(Instant::now);
            }
        }
        if asked.is_some_and(|at| at.elapsed() >= PATIENCE) {
            cgroup.kill();
        }
    }
}

fn is_taken(name: &str) -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let all = std::fs::read_to_string(path).unwrap_or_default();
    all.split_whitespace().any(|n| n == name)
}

/// The command's exit code; for a signal, the code that a shell would return.
fn passed_on(status: ExitStatus) -> Result<(), Failure> {
    let code = status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap_or(1);
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

/// `narrows kernel load`: starts an agent in the background for each controller.
pub fn load(a: &KernelLoad) -> Result<(), Failure> {
    if a.controllers.len() > 1 && (a.name.is_some() || a.system) {
        let flag = if a.name.is_some() { "--as" } else { "--system" };
        return Err(Failure::Input(format!("kernel load: {flag} is for one controller")));
    }
    // Check all of them before any is loaded.
    let all: Vec<(KernelController, String)> = a
        .controllers
        .iter()
        .map(|controller| chosen(controller, a.name.as_deref(), a.native))
        .collect::<Result<_, _>>()?;
    for (i, (_, name)) in all.iter().enumerate() {
        if is_taken(name) || all[..i].iter().any(|(_, other)| other == name) {
            return Err(Error::NameInUse(name.clone()).into());
        }
    }
    for (controller, name) in &all {
        match controller {
            KernelController::Asked(choice) => background(choice.text(), name, a.system)?,
            KernelController::Native(_) => {
                let mut started = start(&BpfPrograms::prepare()?, controller, name, true, None)?;
                if a.system {
                    started.registration.become_system()?;
                }
                started.registration.leave();
            }
        }
        print(&format!("{name}: {}\n", controller.text()))?;
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
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
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

/// Line that an agent prints when it is ready.
const READY: &str = "ready";
/// Time from a request to terminate to the kill.
const PATIENCE: Duration = Duration::from_secs(5);
const TERMINATE: i32 = 15;
const HANG_UP: i32 = 1;

/// The agent that `load` starts. It reports on its standard output whether the start succeeded.
pub fn agent(a: &KernelAgent) -> Result<(), Failure> {
    // Signals of the terminal from which it was loaded should not reach it.
    instance::leave_session();
    let signals = SignalReceiver::take()?;
    let begun = begin(a);
    match &begun {
        Ok(_) => print(&format!("{READY}\n"))?,
        Err(Failure::Input(line) | Failure::Outside(line)) => print(&format!("{line}\n"))?,
        Err(_) => {}
    }
    let started = begun?;
    while !matches!(signals.wait(PATIENCE), Some(ReceivedSignal::Stop { .. })) {}
    drop(started);
    Ok(())
}

fn begin(a: &KernelAgent) -> Result<Started, Failure> {
    let (controller, name) = chosen(&a.controller, Some(&a.name), false)?;
    let mut started = start(&BpfPrograms::prepare()?, &controller, &name, false, None)?;
    if a.system {
        started.registration.become_system()?;
        let program = std::env::current_exe().map_err(|e| Failure::Outside(e.to_string()))?;
        let mut guard = Command::new(program);
        guard.args(["kernel", "guard", &name]).process_group(0);
        guard.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        with_all_signals(&mut guard);
        guard.spawn().map_err(|e| Failure::Outside(e.to_string()))?;
    }
    Ok(started)
}

/// Waits for the agent's end, then restores the system's settings, even if the agent was killed.
pub fn guard(a: &KernelGuard) -> Result<(), Failure> {
    Ok(Instance::guard(&a.name)?)
}

/// `narrows kernel unload`.
pub fn unload(a: &KernelUnload) -> Result<(), Failure> {
    let all = Instance::all();
    if all.is_empty() {
        report_empty_list(a.names.is_empty())?;
    }
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
    wanted.into_iter().try_for_each(|i| Ok(i.unload()?))
}

/// `narrows kernel status`.
pub fn status(a: &KernelStatus) -> Result<(), Failure> {
    let all = Instance::all();
    let mut values = Vec::new();
    let mut text = String::new();
    for i in &all {
        let agent = i.agent();
        match i.status() {
            Ok(status) => {
                values.push(to_json(i, agent, &status));
                text += &table(i, agent, &status);
            }
            Err(Error::NotPermitted) => return Err(Error::NotPermitted.into()),
            // The agent was killed and has no connection left: only its file remains.
            Err(_) => {
                text += &format!("{}: its process was killed; nothing is left of it\n", i.name)
            }
        }
    }
    if all.is_empty() {
        report_empty_list(!a.json)?;
    }
    if a.json {
        return print_json(&Value::Array(values));
    }
    print(&text)
}

/// Reports an empty list, with a note if `noted`. An error without root, which alone can read the list.
fn report_empty_list(noted: bool) -> Result<(), Failure> {
    if !Instance::sees_all() {
        let line = "only root sees what is loaded: run it as root (sudo)";
        return Err(Failure::Outside(line.into()));
    }
    if noted {
        note("nothing is loaded");
    }
    Ok(())
}

fn word(mode: DecidedBy) -> &'static str {
    match mode {
        DecidedBy::New => "new",
        DecidedBy::Controlled => "controller",
        DecidedBy::Fallback => "reno (fallback)",
    }
}

fn to_json(i: &Instance, agent: instance::AgentState, s: &ControlStatus) -> Value {
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
        "name": i.name, "controller": i.controller, "pid": i.pid, "agent_lives": agent == instance::AgentState::Living,
        "native": i.native.is_some(),
        "system": i.system_before.is_some(), "connections": connections,
        "connections_seen": s.seen, "connections_without_slot": s.without_slot,
        "records": s.statistics.records(), "batches": s.statistics.batches(),
        "lost_records": s.lost_records, "fallbacks": s.fallbacks,
        "records_per_s": s.statistics.records_per_s(), "cpu_s": s.statistics.cpu_s(),
        "delay_p50_s": s.statistics.delay_s(0.5), "delay_p99_s": s.statistics.delay_s(0.99),
        "delay_max_s": s.statistics.max_s(),
    })
}

/// Maximum number of connections in the table.
const MAX_LINES: usize = 40;

fn table(i: &Instance, agent: instance::AgentState, s: &ControlStatus) -> String {
    let agent = match agent {
        instance::AgentState::Living => format!("process {}", i.pid),
        instance::AgentState::Needless => "wholly inside the kernel".into(),
        instance::AgentState::Gone => {
            "its process was killed: connections go on as Reno by themselves".into()
        }
    };
    let system = if i.system_before.is_some() { "; the system's congestion control" } else { "" };
    let mut out = format!(
        "{}: {}, {agent}{system}\n  {} connections now, {} so far, {} of them without a slot\n",
        i.name,
        i.controller,
        s.connections.len(),
        s.seen + s.without_slot,
        s.without_slot,
    );
    if i.native.is_none() {
        out += &answers(s);
    }
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

/// Statistics of the user-space side, for display.
fn answers(s: &ControlStatus) -> String {
    let t = &s.statistics;
    format!(
        "  {} records in {} batches, {:.0} per second, {} lost; {} fallbacks\n  answered within {:.3} ms (p50), {:.3} ms \
         (p99), {:.3} ms (max)\n",
        t.records(),
        t.batches(),
        t.records_per_s(),
        s.lost_records,
        s.fallbacks,
        t.delay_s(0.5) * 1e3,
        t.delay_s(0.99) * 1e3,
        t.max_s() * 1e3,
    )
}
