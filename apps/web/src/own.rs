//! The reader's controller: a JavaScript class, called through one imported function.
//!
//! Arguments and results are numbers in one table ([`values`]): seconds, segments, bit/s. After each event the page
//! writes the controller's limits into the table, so an event costs one call.

use narrows_base::{Descriptor, Duration, Rate, Status, Time, Variable};
use narrows_congestion::{
    Ack, CloneController, CongestionEvent, Controller, ControllerEntry, Environment, Feedback,
    LossFoundBy, PacketOutcome, PathEvent, RecoveryCause, RecoveryEvent, Requirements, SendLimits,
    Sent, SimulationScope,
};
use narrows_sim::Loan;
use narrows_sim::protocol::{ProtocolEntry, STREAM_PREFIX};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers in the table: more than any event has, and the variables.
pub const VALUES: usize = 64;
/// Most variables of a class.
const MAX_VARIABLES: usize = 16;
/// A window above it is refused; it is beyond any path.
const MAX_CWND: f64 = 1e9;

static TABLE: [AtomicU64; VALUES] = [const { AtomicU64::new(0) }; VALUES];

/// A call: its number, and the object that it is for. Returns 0, or 1 if it failed.
type Call = extern "C" fn(u32, u32) -> u32;

thread_local! {
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
    static LENT: RefCell<Option<Loan>> = const { RefCell::new(None) };
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// The table of arguments and results.
#[cfg(target_arch = "wasm32")]
pub fn values() -> &'static [AtomicU64; VALUES] {
    &TABLE
}

/// Sets the imported function.
#[cfg(target_arch = "wasm32")]
pub fn set_call(call: Call) {
    CALL.set(Some(call));
}

/// Calls, and the fields of the event of each, in the order of the table.
#[derive(Clone, Copy)]
#[repr(u32)]
enum OwnCall {
    New,
    Ack,
    Sent,
    Outcome,
    Losses,
    RecoveryStart,
    RecoveryEnd,
    SlowStartRestart,
    SpuriousLosses,
    Hints,
    Dispersion,
    PacketBytes,
    Tick,
    Copy,
    Drop,
    Watch,
}

const RECOVERY: &[&str] = &["now", "ecn?", "flight", "outstanding", "min_rtt", "srtt"];

/// In the order of [`OwnCall`]: the kind of event, and its fields; those with a question mark are truth values.
const EVENTS: [(&str, &[&str]); 13] = [
    (
        "new",
        &[
            "initial_window",
            "initial_ssthresh",
            "packet_bytes",
            "hinted_rate",
            "hinted_rtt",
            "hinted_loss",
        ],
    ),
    (
        "ack",
        &[
            "now",
            "rtt",
            "srtt",
            "rttvar",
            "min_rtt",
            "forward_delay",
            "newly_acked",
            "counted",
            "newly_sacked",
            "newly_delivered",
            "duplicate?",
            "flight",
            "outstanding",
            "prior_outstanding",
            "sent_since",
            "window_limited?",
            "in_recovery?",
            "round",
            "round_start?",
            "marks",
            "delivery_rate",
            "app_limited?",
            "may_grow?",
        ],
    ),
    ("sent", &["now", "bytes", "outstanding", "retransmission?", "last_waiting?"]),
    ("outcome", &["now", "seq", "sent", "bytes", "lost?", "marked?", "radio?"]),
    ("losses", &["now", "segments", "sent", "transmissions", "timeout?", "new_episode?", "radio"]),
    ("recovery_start", RECOVERY),
    ("recovery_end", RECOVERY),
    ("slow_start_restart", &["now", "flight", "timeout?", "backoffs", "min_rtt", "srtt"]),
    ("spurious_losses", &["now", "packets", "undo?"]),
    ("hints", &["rate", "rtt", "loss"]),
    ("dispersion", &["rtt", "bits", "took"]),
    ("packet_bytes", &["bytes"]),
    ("tick", &["now"]),
];

/// For the page: kinds of events and their fields.
pub fn events() -> Value {
    EVENTS.iter().map(|(kind, fields)| json!({ "kind": kind, "fields": fields })).collect()
}

/// Results that the page writes after a call.
const CWND: usize = 0;
const PACING: usize = 1;
const SSTHRESH: usize = 2;
const NEXT_TICK: usize = 3;
const OBJECT: usize = 4;
/// The number of words of feedback, and then these.
const FEEDBACK: usize = 5;
const NEEDS_RRTP: usize = 10;
const L4S: usize = 11;

fn put(at: usize, value: f64) {
    if let Some(slot) = TABLE.get(at) {
        slot.store(value.to_bits(), Ordering::Relaxed);
    }
}

fn get(at: usize) -> f64 {
    TABLE.get(at).map_or(f64::NAN, |slot| f64::from_bits(slot.load(Ordering::Relaxed)))
}

fn call(call: OwnCall, object: u32, arguments: &[f64]) -> bool {
    if FAILED.get() {
        return false;
    }
    for (at, value) in arguments.iter().enumerate() {
        put(at, *value);
    }
    let done = CALL.get().is_some_and(|f| f(call as u32, object) == 0);
    if !done {
        FAILED.set(true);
    }
    done
}

/// A class of the reader, as the page found it.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct OwnClass {
    /// The protocol's name.
    name: String,
    /// Names of its variables, with their units.
    variables: Vec<(String, String)>,
}

/// Lists the class as a protocol over TCP and over rrtp, until another replaces it.
///
/// # Errors
/// An invalid name, or a constructor that throws.
pub fn lend(class: &OwnClass) -> Result<(), String> {
    LENT.set(None);
    FAILED.set(false);
    if class.variables.len() > MAX_VARIABLES {
        return Err(format!("a controller has at most {MAX_VARIABLES} variables"));
    }
    // A worker lists one class in its life.
    let leaked = |text: &str| -> &'static str { String::leak(text.to_string()) };
    let name = leaked(&class.name);
    let variables = class.variables.iter().map(|(variable, unit)| {
        Variable::new(leaked(variable), leaked(unit), "of the controller in the page")
    });
    let variables: &'static [Variable] = Vec::leak(variables.collect());
    let descriptor: &'static Descriptor = Box::leak(Box::new(Descriptor {
        name,
        summary: "the controller in the page",
        source: "the page",
        senses: "what its class asks for",
        sets: "window, and a pacing rate if it has one",
        params: &[],
        status: Status::NotValidated,
    }));
    let build: &'static _ = Box::leak(Box::new(move |_: &_, environment: &Environment| {
        Box::new(OwnController::new(variables, environment)) as Box<dyn Controller>
    }));
    let controller = ControllerEntry::from_closure(descriptor, build)
        .with_variables(variables)
        .with_scope(SimulationScope { enter, failure });
    let over_tcp = ProtocolEntry::tcp(name, name, "sack", descriptor.summary);
    let over_rrtp = leaked(&format!("{STREAM_PREFIX}{name}"));
    let over_rrtp = ProtocolEntry::stream(over_rrtp, name, descriptor.summary);
    let loan = Loan::new(
        Box::leak(Box::new(controller)),
        Box::leak(Box::new(over_tcp)),
        Box::leak(Box::new(over_rrtp)),
    );
    LENT.set(Some(loan.map_err(|e| e.to_string())?));
    Ok(())
}

fn enter(run: &mut dyn FnMut()) {
    FAILED.set(false);
    run();
}

/// The page has the reason, with its line.
fn failure() -> Option<String> {
    FAILED.get().then(|| "the controller in the page failed".into())
}

/// An object of the class.
struct OwnController {
    object: u32,
    variables: &'static [Variable],
    limits: SendLimits,
    next_tick: Time,
    feedback: Feedback,
    requirements: Requirements,
}

impl OwnController {
    fn new(variables: &'static [Variable], e: &Environment) -> OwnController {
        let hints = e.hints;
        let made = call(
            OwnCall::New,
            0,
            &[
                e.initial_window,
                e.initial_ssthresh,
                f64::from(e.packet_bytes),
                hints.rate.map_or(f64::NAN, |r| r.as_bps() as f64),
                hints.rtt.map_or(f64::NAN, Duration::as_secs_f64),
                hints.loss.unwrap_or(f64::NAN),
            ],
        );
        let rrtp = made && get(NEEDS_RRTP) > 0.0;
        let l4s = made && get(L4S) > 0.0;
        let base = if rrtp { Requirements::RRTP } else { Requirements::default() };
        let requirements = if l4s { Requirements::L4S } else { base };
        let mut controller = OwnController {
            object: if made { get(OBJECT) as u32 } else { 0 },
            variables,
            limits: SendLimits::unpaced(1.0),
            next_tick: Time::NEVER,
            feedback: Feedback::NONE,
            requirements,
        };
        controller.read(made);
        controller
    }

    /// Passes an event and reads the limits.
    fn event(&mut self, event: OwnCall, arguments: &[f64]) {
        let done = call(event, self.object, arguments);
        self.read(done);
    }

    fn read(&mut self, done: bool) {
        if !done {
            self.next_tick = Time::NEVER;
            return;
        }
        let pacing = get(PACING);
        let ssthresh = get(SSTHRESH);
        self.limits = SendLimits {
            cwnd: get(CWND).clamp(0.0, MAX_CWND),
            pacing_rate: (pacing >= 0.0).then(|| Rate::from_bps_f64(pacing.max(1.0))),
            ssthresh: (ssthresh >= 0.0).then_some(ssthresh),
        };
        let tick = get(NEXT_TICK);
        self.next_tick = if tick >= 0.0 { Time::from_secs_f64(tick) } else { Time::NEVER };
        let words = (get(FEEDBACK) as usize).min(4);
        let numbers = [1, 2, 3, 4].map(|i| get(FEEDBACK + i));
        self.feedback = Feedback::of(numbers.get(..words).unwrap_or_default());
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn optional(duration: Option<Duration>) -> f64 {
    duration.map_or(f64::NAN, Duration::as_secs_f64)
}

fn recovery(event: &RecoveryEvent) -> [f64; 6] {
    [
        event.now.as_secs_f64(),
        flag(event.cause == RecoveryCause::EcnCe),
        event.flight as f64,
        event.outstanding as f64,
        event.min_rtt.as_secs_f64(),
        event.srtt.as_secs_f64(),
    ]
}

impl Controller for OwnController {
    fn on_ack(&mut self, a: &Ack) {
        let fields = [
            a.now.as_secs_f64(),
            a.rtt.as_secs_f64(),
            a.estimate.srtt.as_secs_f64(),
            a.estimate.rttvar.as_secs_f64(),
            a.estimate.min_rtt.as_secs_f64(),
            optional(a.forward_delay),
            a.cumulative.newly_acked as f64,
            a.counted as f64,
            a.cumulative.newly_sacked as f64,
            a.newly_delivered as f64,
            flag(a.cumulative.duplicate),
            a.flight as f64,
            a.outstanding as f64,
            a.prior_outstanding as f64,
            a.sent_since as f64,
            flag(a.window_limited),
            flag(a.in_recovery),
            a.round as f64,
            flag(a.round_start),
            f64::from(a.marks),
            a.rate.map_or(f64::NAN, |r| r.per_second()),
            flag(a.rate.is_some_and(|r| r.app_limited)),
            flag(a.may_grow()),
        ];
        self.event(OwnCall::Ack, &fields);
    }

    fn send_limits(&self) -> SendLimits {
        self.limits
    }

    fn on_sent(&mut self, s: &Sent) {
        let fields = [
            s.now.as_secs_f64(),
            f64::from(s.bytes),
            s.outstanding as f64,
            flag(s.retransmission),
            flag(s.last_waiting),
        ];
        self.event(OwnCall::Sent, &fields);
    }

    fn on_packet_outcome(&mut self, o: &PacketOutcome) {
        let fields = [
            o.now.as_secs_f64(),
            o.seq as f64,
            o.sent.as_secs_f64(),
            f64::from(o.bytes),
            flag(o.lost),
            flag(o.marked),
            flag(o.radio),
        ];
        self.event(OwnCall::Outcome, &fields);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(l) => self.event(
                OwnCall::Losses,
                &[
                    l.now.as_secs_f64(),
                    l.segments as f64,
                    l.sent.as_secs_f64(),
                    f64::from(l.transmissions),
                    flag(l.found_by == LossFoundBy::Timeout),
                    flag(l.new_episode),
                    l.radio as f64,
                ],
            ),
            CongestionEvent::RecoveryStart(r) => self.event(OwnCall::RecoveryStart, &recovery(r)),
            CongestionEvent::RecoveryEnd(r) => self.event(OwnCall::RecoveryEnd, &recovery(r)),
            CongestionEvent::SlowStartRestart(r) => self.event(
                OwnCall::SlowStartRestart,
                &[
                    r.now.as_secs_f64(),
                    r.flight as f64,
                    flag(r.timeout),
                    f64::from(r.backoffs),
                    r.min_rtt.as_secs_f64(),
                    r.srtt.as_secs_f64(),
                ],
            ),
            CongestionEvent::SpuriousLosses(s) => self.event(
                OwnCall::SpuriousLosses,
                &[s.now.as_secs_f64(), s.packets as f64, flag(s.undo)],
            ),
            _ => {}
        }
    }

    fn on_path_event(&mut self, _: Time, event: &PathEvent) {
        match event {
            PathEvent::Hints(h) => {
                let rate = h.rate.map_or(f64::NAN, |r| r.as_bps() as f64);
                self.event(OwnCall::Hints, &[rate, optional(h.rtt), h.loss.unwrap_or(f64::NAN)]);
            }
            PathEvent::Dispersion(d) => self
                .event(OwnCall::Dispersion, &[d.rtt.as_secs_f64(), d.bits, d.took.as_secs_f64()]),
            PathEvent::PacketBytes(bytes) => {
                self.event(OwnCall::PacketBytes, &[f64::from(*bytes)]);
            }
            _ => {}
        }
    }

    fn on_tick(&mut self, now: Time) {
        self.event(OwnCall::Tick, &[now.as_secs_f64()]);
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn feedback_to_receiver(&self) -> Feedback {
        self.feedback
    }

    fn requirements(&self) -> Requirements {
        self.requirements
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if self.variables.is_empty() || !call(OwnCall::Watch, self.object, &[]) {
            return;
        }
        for (at, variable) in self.variables.iter().enumerate() {
            put(variable.name, get(at));
        }
    }
}

impl CloneController for OwnController {
    fn clone_box(&self) -> Box<dyn Controller> {
        let copied = call(OwnCall::Copy, self.object, &[]);
        let object = if copied { get(OBJECT) as u32 } else { 0 };
        Box::new(OwnController { object, ..*self })
    }
}

impl Drop for OwnController {
    fn drop(&mut self) {
        if !FAILED.get() {
            call(OwnCall::Drop, self.object, &[]);
        }
    }
}
