//! A controller with methods compiled by numba: functions over two records, its state and the event. They need no GIL,
//! so simulations of such controllers run in parallel.

use super::class::Class;
use super::failure::{self, Fault};
use super::interpreted::{ConstructorParameter, Failed};
use super::limits;
use narrows_base::Time;
use narrows_congestion as congestion;
use narrows_congestion::{
    CongestionEvent, Controller, Environment, PacketOutcome, PathEvent, SendLimits,
};
use pyo3::prelude::*;
use std::mem::offset_of;
use std::sync::Arc;

/// An acknowledgement for compiled code, in the layout that [`layouts`] returns.
#[repr(C)]
struct AckRecord {
    now: f64,
    rtt: f64,
    srtt: f64,
    rttvar: f64,
    min_rtt: f64,
    /// In seconds; NaN if it is absent.
    forward_delay: f64,
    /// In segments per second; NaN if it is absent.
    delivery_rate: f64,
    newly_acked: i64,
    counted: i64,
    newly_sacked: i64,
    newly_delivered: i64,
    flight: i64,
    outstanding: i64,
    prior_outstanding: i64,
    sent_since: i64,
    round: i64,
    marks: i64,
    duplicate: bool,
    window_limited: bool,
    in_recovery: bool,
    round_start: bool,
    app_limited: bool,
    may_grow: bool,
}

impl AckRecord {
    fn new(a: &congestion::Ack) -> AckRecord {
        AckRecord {
            now: a.now.as_secs_f64(),
            rtt: a.rtt.as_secs_f64(),
            srtt: a.estimate.srtt.as_secs_f64(),
            rttvar: a.estimate.rttvar.as_secs_f64(),
            min_rtt: a.estimate.min_rtt.as_secs_f64(),
            forward_delay: a.forward_delay.map_or(f64::NAN, |d| d.as_secs_f64()),
            delivery_rate: a.rate.map_or(f64::NAN, |r| r.per_second()),
            newly_acked: a.cumulative.newly_acked as i64,
            counted: a.counted as i64,
            newly_sacked: a.cumulative.newly_sacked as i64,
            newly_delivered: a.newly_delivered as i64,
            flight: a.flight as i64,
            outstanding: a.outstanding as i64,
            prior_outstanding: a.prior_outstanding as i64,
            sent_since: a.sent_since as i64,
            round: a.round as i64,
            marks: a.marks.into(),
            duplicate: a.cumulative.duplicate,
            window_limited: a.window_limited,
            in_recovery: a.in_recovery,
            round_start: a.round_start,
            app_limited: a.rate.is_some_and(|r| r.app_limited),
            may_grow: a.may_grow(),
        }
    }
}

/// The beginning of a recovery, or a timeout, for compiled code.
#[repr(C)]
struct EventRecord {
    now: f64,
    min_rtt: f64,
    srtt: f64,
    flight: i64,
    outstanding: i64,
    backoffs: i64,
    is_ecn: bool,
}

/// The outcome of a packet, for compiled code.
#[repr(C)]
struct OutcomeRecord {
    now: f64,
    sent: f64,
    number: i64,
    bytes: i64,
    lost: bool,
    marked: bool,
    radio: bool,
}

/// Hints, for compiled code; NaN if absent.
#[repr(C)]
struct HintsRecord {
    now: f64,
    rate: f64,
    rtt: f64,
    loss: f64,
}

/// Dispersion, for compiled code.
#[repr(C)]
struct DispersionRecord {
    now: f64,
    rate: f64,
    rtt: f64,
}

/// A field of a record: name, kind (`f8`, `i8` or `b1`, as NumPy writes them) and offset.
type Field = (String, &'static str, usize);

macro_rules! fields {
    ($record:ty: $($kind:literal $($name:ident)*;)*) => {
        vec![$($((stringify!($name).to_string(), $kind, offset_of!($record, $name)),)*)*]
    };
}

/// Layouts and sizes of the events' records: of acknowledgements, of losses and timeouts, of outcomes, of hints, and of
/// dispersions.
#[pyfunction]
pub fn layouts() -> [(Vec<Field>, usize); 5] {
    let ack = fields!(AckRecord:
        "f8" now rtt srtt rttvar min_rtt forward_delay delivery_rate;
        "i8" newly_acked counted newly_sacked newly_delivered flight outstanding prior_outstanding sent_since round
            marks;
        "b1" duplicate window_limited in_recovery round_start app_limited may_grow;);
    let event = fields!(EventRecord:
        "f8" now min_rtt srtt;
        "i8" flight outstanding backoffs;
        "b1" is_ecn;);
    let outcome = fields!(OutcomeRecord:
        "f8" now sent;
        "i8" number bytes;
        "b1" lost marked radio;);
    let hints = fields!(HintsRecord: "f8" now rate rtt loss;);
    let dispersion = fields!(DispersionRecord: "f8" now rate rtt;);
    [
        (ack, size_of::<AckRecord>()),
        (event, size_of::<EventRecord>()),
        (outcome, size_of::<OutcomeRecord>()),
        (hints, size_of::<HintsRecord>()),
        (dispersion, size_of::<DispersionRecord>()),
    ]
}

/// The machine code and the state's record, as created by `compiled.py`. The address of an absent method is 0.
#[derive(FromPyObject, Clone)]
pub struct CompiledLayout {
    on_ack: usize,
    on_loss: usize,
    on_rto: usize,
    on_outcome: usize,
    on_hints: usize,
    on_dispersion: usize,
    on_tick: usize,
    next_tick: usize,
    /// Name, offset, and whether it is a bool; otherwise it is a float.
    fields: Vec<(String, usize, bool)>,
    /// Size of the state in bytes; a multiple of 8.
    size: usize,
}

impl CompiledLayout {
    fn offset(&self, name: &str) -> Option<usize> {
        let field = self.fields.iter().find(|(field, _, is_bool)| field == name && !is_bool);
        field.map(|(_, offset, _)| *offset)
    }
}

/// Calls machine code of numba. Each function gets the state and an event, and returns whether it raised.
#[allow(unsafe_code)]
mod call {
    use std::mem::transmute;

    /// # Safety
    /// `address` must be that of a C function `int64 (state *, const E *)`, compiled for this layout of `state` and
    /// for the layout of `E` that [`layouts`](super::layouts) returns.
    pub unsafe fn on_event<E>(address: usize, state: &mut [u64], event: &E) -> bool {
        // SAFETY: the caller guarantees that a function of this type is at the address.
        let f: extern "C" fn(*mut u64, *const E) -> i64 = unsafe { transmute(address) };
        f(state.as_mut_ptr(), event) != 0
    }
    /// # Safety
    /// As [`on_event`], with a time.
    pub unsafe fn on_tick(address: usize, state: &mut [u64], now: f64) -> bool {
        // SAFETY: the caller guarantees that a function of this type is at the address.
        let f: extern "C" fn(*mut u64, f64) -> i64 = unsafe { transmute(address) };
        f(state.as_mut_ptr(), now) != 0
    }
    /// # Safety
    /// `address` must be that of a C function `double (state *)`, compiled for this layout of `state`.
    pub unsafe fn next_tick(address: usize, state: &mut [u64]) -> f64 {
        // SAFETY: the caller guarantees that a function of this type is at the address.
        let f: extern "C" fn(*mut u64) -> f64 = unsafe { transmute(address) };
        f(state.as_mut_ptr())
    }
}

/// A compiled controller of a flow.
#[derive(Clone)]
pub struct Compiled {
    /// Keeps the machine code alive.
    class: Arc<Class>,
    layout: CompiledLayout,
    state: Vec<u64>,
    /// Offsets in bytes of the values that are read after each call.
    cwnd: usize,
    rate: Option<usize>,
    ssthresh: Option<usize>,
    limits: SendLimits,
    next_tick: Time,
    failed: bool,
}

impl Compiled {
    /// Creates the state for a flow; an exception of the class ends the simulation.
    pub fn build(
        class: &Arc<Class>,
        layout: &CompiledLayout,
        arguments: &[(&'static str, ConstructorParameter)],
        environment: &Environment,
    ) -> Box<dyn Controller> {
        match Compiled::new(class, layout, arguments, environment) {
            Ok(made) => Box::new(made),
            Err(fault) => {
                failure::record(class.name, "its constructor", Time::ZERO, fault);
                Box::new(Failed)
            }
        }
    }

    fn new(
        class: &Arc<Class>,
        layout: &CompiledLayout,
        arguments: &[(&'static str, ConstructorParameter)],
        environment: &Environment,
    ) -> Result<Compiled, Fault> {
        let mut made = Compiled {
            class: class.clone(),
            layout: layout.clone(),
            state: vec![0; layout.size.div_ceil(8)],
            cwnd: layout.offset("cwnd").ok_or_else(|| Fault::Limit("it has no cwnd".into()))?,
            rate: layout.offset("pacing_rate"),
            ssthresh: layout.offset("ssthresh"),
            limits: SendLimits::unpaced(1.0),
            next_tick: Time::NEVER,
            failed: false,
        };
        Python::attach(|py| made.fill(py, arguments, environment))?;
        made.read(None).map_err(Fault::Limit)?;
        Ok(made)
    }

    /// Creates an object in Python, and copies its attributes to the state.
    fn fill(
        &mut self,
        py: Python<'_>,
        arguments: &[(&'static str, ConstructorParameter)],
        environment: &Environment,
    ) -> Result<(), Fault> {
        let object = ConstructorParameter::object(py, &self.class.factory, arguments, environment)?;
        for (name, offset, is_bool) in &self.layout.fields {
            let value = object.getattr(name.as_str())?;
            let word = &mut self.state[offset / 8];
            if *is_bool {
                let shift = offset % 8 * 8;
                let bit = u64::from(value.extract::<bool>()?).to_le() << shift;
                *word = *word & !(0xFF << shift) | bit;
            } else {
                *word = value.extract::<f64>()?.to_bits();
            }
        }
        Ok(())
    }

    fn float(&self, offset: usize) -> f64 {
        f64::from_bits(self.state[offset / 8])
    }

    fn read(&mut self, ticked: Option<Time>) -> Result<(), String> {
        let optional = |offset: Option<usize>| offset.map(|o| self.float(o));
        self.limits =
            limits::checked(self.float(self.cwnd), optional(self.rate), optional(self.ssthresh))?;
        if self.layout.next_tick != 0 {
            #[allow(unsafe_code)]
            // SAFETY: numba compiled it for this state (`compiled.py`), and `class` keeps it alive.
            let next = unsafe { call::next_tick(self.layout.next_tick, &mut self.state) };
            self.next_tick = limits::checked_tick(Some(next), ticked)?;
        }
        Ok(())
    }

    fn after(&mut self, method: &'static str, now: Time, raised: bool, ticked: Option<Time>) {
        let fault = match raised {
            true => Some(
                "it raised; compiled code cannot say what: run the class without @narrows.compiled to see".into(),
            ),
            false => self.read(ticked).err(),
        };
        if let Some(fault) = fault {
            self.failed = true;
            self.next_tick = Time::NEVER;
            failure::record(self.class.name, method, now, Fault::Limit(fault));
        }
    }

    fn event<E>(&mut self, method: &'static str, now: Time, address: usize, event: &E) {
        if address == 0 || self.failed {
            return;
        }
        #[allow(unsafe_code)]
        // SAFETY: as in `read`.
        let raised = unsafe { call::on_event(address, &mut self.state, event) };
        self.after(method, now, raised, None);
    }
}

impl Controller for Compiled {
    fn on_ack(&mut self, ack: &congestion::Ack) {
        self.event("on_ack", ack.now, self.layout.on_ack, &AckRecord::new(ack));
    }

    fn send_limits(&self) -> SendLimits {
        self.limits
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(r) => {
                let record = EventRecord {
                    now: r.now.as_secs_f64(),
                    min_rtt: r.min_rtt.as_secs_f64(),
                    srtt: r.srtt.as_secs_f64(),
                    flight: r.flight as i64,
                    outstanding: r.outstanding as i64,
                    backoffs: 0,
                    is_ecn: r.cause == congestion::RecoveryCause::EcnCe,
                };
                self.event("on_loss", r.now, self.layout.on_loss, &record);
            }
            CongestionEvent::SlowStartRestart(r) => {
                let record = EventRecord {
                    now: r.now.as_secs_f64(),
                    min_rtt: r.min_rtt.as_secs_f64(),
                    srtt: r.srtt.as_secs_f64(),
                    flight: r.flight as i64,
                    outstanding: 0,
                    backoffs: r.backoffs.into(),
                    is_ecn: false,
                };
                self.event("on_rto", r.now, self.layout.on_rto, &record);
            }
            _ => {}
        }
    }

    fn on_packet_outcome(&mut self, o: &PacketOutcome) {
        let record = OutcomeRecord {
            now: o.now.as_secs_f64(),
            sent: o.sent.as_secs_f64(),
            number: o.seq as i64,
            bytes: o.bytes.into(),
            lost: o.lost,
            marked: o.marked,
            radio: o.radio,
        };
        self.event("on_outcome", o.now, self.layout.on_outcome, &record);
    }

    fn on_path_event(&mut self, at: Time, event: &PathEvent) {
        let now = at.as_secs_f64();
        match event {
            PathEvent::Hints(hints) => {
                let record = HintsRecord {
                    now,
                    rate: hints.rate.map_or(f64::NAN, |r| r.as_bps() as f64),
                    rtt: hints.rtt.map_or(f64::NAN, |d| d.as_secs_f64()),
                    loss: hints.loss.unwrap_or(f64::NAN),
                };
                self.event("on_hints", at, self.layout.on_hints, &record);
            }
            PathEvent::Dispersion(d) => {
                let rate = d.bits / congestion::positive(d.took);
                let record = DispersionRecord { now, rate, rtt: d.rtt.as_secs_f64() };
                self.event("on_dispersion", at, self.layout.on_dispersion, &record);
            }
            _ => {}
        }
    }

    fn on_tick(&mut self, now: Time) {
        if self.layout.on_tick == 0 || self.failed {
            return;
        }
        let seconds = now.as_secs_f64();
        #[allow(unsafe_code)]
        // SAFETY: as in `read`.
        let raised = unsafe { call::on_tick(self.layout.on_tick, &mut self.state, seconds) };
        self.after("on_tick", now, raised, Some(now));
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        for name in self.class.variables {
            if let Some(offset) = self.layout.offset(name) {
                put(name, self.float(offset));
            }
        }
    }
}
