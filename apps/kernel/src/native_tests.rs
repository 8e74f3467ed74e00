//! The controller inside the kernel against the floating-point one.

use super::Native;
use crate::Choice;
use crate::connection::KernelConnection;
use crate::record::{Record, control};
use crate::transfer_tests::{Net, prepared, read, send_forever};
use narrows_base::{Duration, RandomKey, Spec, Time};
use narrows_congestion::stpd::{self, StpdStartup};
use narrows_congestion::{Ack, Controller, Environment};
use std::collections::BTreeSet;

/// Largest difference of the windows, in packets, after any number of acknowledgements. Each side rounds to 2^-32
/// packets, errors to 2^-16 and gains to 2^-24.
const MOST: f64 = 0.02;

/// Where `struct stpd_state` has the stage of its start: 0 when it is over.
const STAGE: usize = 24;

/// The state and the acknowledgement of `struct stpd_step`.
struct Step {
    bytes: [u8; 48],
}

impl Step {
    fn begin(cwnd: u32, startup: StpdStartup) -> Step {
        let mut step = Step { bytes: [0; 48] };
        step.put(0, &(i64::from(cwnd) << 32).to_ne_bytes());
        step.bytes[STAGE] = u8::from(startup != StpdStartup::Control);
        step
    }
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn tell(&mut self, rtt_us: u32, min_rtt_us: u32, product: u32, may_rise: bool, delivers: bool) {
        self.put(32, &rtt_us.to_ne_bytes());
        self.put(36, &min_rtt_us.to_ne_bytes());
        self.put(40, &product.to_ne_bytes());
        self.put(44, &[u8::from(may_rise), u8::from(delivers)]);
    }
    fn window(&self) -> f64 {
        let window = self.bytes[..8].try_into().unwrap();
        i64::from_ne_bytes(window) as f64 / 32_f64.exp2()
    }
}

fn floating(text: &str, window: f64) -> Box<dyn Controller> {
    let spec = Spec::parse(text).unwrap();
    let settings = narrows_congestion::find("stpd").unwrap().read(&spec).unwrap();
    stpd::build(&settings, &Environment { initial_window: window, ..Environment::default() })
}

/// Every BDP, queue and parameter: the same decisions at each acknowledgement. The kernel runs the program.
#[test]
fn fixed_point_decides_as_floating_point() {
    let Some((programs, _)) = prepared() else { return };
    let specifications = [
        "stpd",
        "stpd(reference=3)",
        "stpd(supervisor=fixed,kp=2,kd=1)",
        "stpd(startup=pd,max-rise=0.2)",
        "stpd(startup=slow)",
    ];
    for (i, text) in specifications.into_iter().enumerate() {
        let native = Native::new(text).unwrap();
        let program = programs.test_program("nw_stpd_step", &native).unwrap();
        for seed in 0..4 {
            let key = RandomKey::from_seed(seed).numbered(i as u64);
            let mut controller = floating(text, 10.0);
            let mut step = Step::begin(10, native.numbers.startup);
            // A path of `path` packets; further packets wait in its queue.
            let path = 5.0 + 400.0 * key.draw(1).powi(2);
            let base_us = 1000.0 + 1e5 * key.draw(2);
            let mut min = u32::MAX;
            let mut stages = BTreeSet::new();
            for n in 0..5000_u64 {
                let noise = 1.0 + 0.02 * key.draw(10 + 2 * n);
                let window = controller.send_limits().cwnd;
                let rtt_us = (base_us * noise * (window / path).max(1.0)) as u32;
                min = min.min(rtt_us);
                let product = (window * (0.7 + 0.6 * key.draw(11 + 2 * n))) as u32;
                let may_rise = n % 7 != 3;
                let delivers = n % 11 != 5;
                let micros = |us: u32| Duration::from_nanos(u64::from(us) * 1000);
                controller.on_ack(&ack(micros(rtt_us), micros(min), product, may_rise, delivers));
                step.tell(rtt_us, min, product, may_rise, delivers);
                stages.insert(step.bytes[STAGE]);
                program.run(&mut step.bytes).unwrap();
                let windows = (step.window(), controller.send_limits().cwnd);
                assert!((windows.0 - windows.1).abs() < MOST, "{text}, {seed}, {n}: {windows:?}");
            }
            assert!(controller.send_limits().cwnd > 2.0, "it has had something to decide");
            let all = match native.numbers.startup {
                StpdStartup::Drain => 6,
                StpdStartup::Slow => 2,
                StpdStartup::Control => 1,
            };
            assert_eq!(stages.len(), all, "{text}, {seed}: {stages:?}");
        }
    }
}

fn ack(rtt: Duration, min_rtt: Duration, product: u32, may_rise: bool, delivers: bool) -> Ack {
    let product = u64::from(product);
    Ack {
        newly_delivered: u64::from(delivers),
        sent_since: product,
        flight: product,
        outstanding: product,
        prior_outstanding: product,
        window_limited: may_rise,
        ..Ack::of_packet(Time::from_nanos(1), rtt, min_rtt)
    }
}

/// Real transfers, of which the kernel records every event. The floating-point controller, driven in user space by the
/// same events, computes the same window at each of them. Slow start, loss recovery and control are covered.
#[test]
fn recorded_transfers_are_decided_alike() {
    for (name, loss) in [("nw_native_0", 0.0), ("nw_native_1", 0.01)] {
        let Some((programs, net)) = prepared() else { return };
        let net = if loss > 0.0 { Net::losing(loss).unwrap() } else { net };
        let native = Native::new("stpd").unwrap();
        let loaded = programs.register_native(name, &native, false).unwrap();
        loaded.control.store(control::LISTENS, 1);
        let (near, mut far) = net.connect(name);
        send_forever(near);
        read(&mut far, 6_000_000);
        let choice = Choice::new("stpd").unwrap();
        let mut connection: Option<KernelConnection> = None;
        let mut worst = 0.0_f64;
        let mut largest = 0.0_f64;
        let mut windows = Vec::new();
        let records = loaded.ring.drain(|r: &Record| {
            let now = Time::from_nanos(r.time);
            let c = connection.get_or_insert_with(|| KernelConnection::new(&choice, r, now));
            c.on_record(r, now);
            let window = f64::from(r.window) / 256.0;
            worst = worst.max((window - c.window()).abs());
            largest = largest.max(window);
            windows.push(window);
        });
        assert!(records > 1000 && largest > 30.0, "{records} records, up to {largest} packets");
        assert!(worst < MOST, "loss {loss}: windows differ by up to {worst} packets");
        // Its window is the one that was used.
        let status = crate::status::ControlStatus::read(&loaded.slots, &loaded.control);
        assert_eq!(status.connections[0].decided_by, crate::status::DecidedBy::Controlled);
        assert!(status.connections[0].cwnd > 20, "{status:?}");
    }
}

/// Registered without a process: it stays, and its connections work, until it is unloaded.
#[test]
fn native_controller_stays_without_a_handle() {
    let Some((programs, net)) = prepared() else { return };
    let native = Native::new("stpd(reference=2)").unwrap();
    let loaded = programs.register_native("nw_native_stays", &native, true).unwrap();
    let id = loaded.lasting.unwrap();
    drop((loaded, programs));
    let (near, mut far) = net.connect("nw_native_stays");
    send_forever(near);
    read(&mut far, 1_000_000);
    crate::bpf::object::unregister(id).unwrap();
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    assert!(!all.unwrap().contains("nw_native_stays"));
    read(&mut far, 1_000_000);
    assert!(crate::bpf::object::unregister(id).is_err());
}

#[test]
fn other_controllers_are_refused() {
    let e = Native::new("vegas").unwrap_err().to_string();
    assert!(e.contains("stpd") && !e.contains('\n'), "{e}");
    assert!(Native::new("stpd(nonsense=1)").is_err());
    let native = Native::new("stpd").unwrap();
    assert_eq!((native.parameters().len(), native.gains().count()), (32, 121));
}
