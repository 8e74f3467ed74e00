//! The interface as C sees it: the example under AddressSanitizer, and hostile calls.
#![allow(unsafe_code, reason = "calls the C interface")]

use narrows_c::*;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut};

/// The static library beside this test.
fn library() -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?;
    let files = std::fs::read_dir(folder.parent()?).ok()?.flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libnarrows_c") && name.ends_with(".a")
    };
    files.filter(is_it).max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok())
}

#[test]
fn example_in_c_transfers_under_address_sanitizer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = std::env::temp_dir().join(format!("narrows-transfer-{}", std::process::id()));
    let library = library().expect("cargo builds the static library for tests");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-g",
        "-fsanitize=address,undefined",
    ]);
    compiler.arg("-I").arg(root.join("include")).arg(root.join("examples/transfer.c"));
    compiler.arg(library).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&built);
    match compiler.output() {
        Err(e) => return eprintln!("skipped: no C compiler ({e})"),
        Ok(out) if !out.status.success() => {
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            if text.contains("asan") || text.contains("ubsan") {
                return eprintln!("skipped: the C compiler has no sanitizers");
            }
            panic!("{text}");
        }
        Ok(_) => {}
    }
    let run = |args: [&str; 2]| Command::new(&built).args(args).output().unwrap();
    for controller in ["rrtp", "cubic", "bbr3"] {
        let out = run(["20Mbit/s,25ms,loss=1%", controller]);
        assert!(out.status.success(), "{controller}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let out = run(["20Mbit/s", "rrtp"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("the delay is missing"));
    std::fs::remove_file(built).unwrap();
}

fn controller(specification: &str) -> *mut Controller {
    let text = CString::new(specification).unwrap();
    // SAFETY: a text, and no buffer.
    unsafe { narrows_controller_new(text.as_ptr(), 1200, 1, 0, null_mut(), 0) }
}

#[test]
fn null_and_wrong_arguments_are_refused() {
    let bad = [0xff_u8, 0];
    let mut message = [1; 8];
    // SAFETY: NULL is permitted by the header; texts end with a NUL, and buffers have the given sizes.
    unsafe {
        assert!(narrows_controller_new(null(), 1200, 1, 0, message.as_mut_ptr(), 8).is_null());
        assert_eq!(message[7], 0, "cut, with its NUL");
        assert!(narrows_controller_new(bad.as_ptr().cast(), 1, 1, 0, null_mut(), 9).is_null());
        assert!(controller("rrt").is_null());
        assert!(controller("tfwc").is_null());
        assert_eq!(narrows_controller_sent(null_mut(), 0, 0, 0), -1);
        assert_eq!(narrows_controller_window(null()), 0);
        narrows_controller_free(null_mut());
        narrows_network_free(null_mut());
        assert_eq!(narrows_network_node(null(), null()), -1);
        assert_eq!(narrows_network_next_timeout(null()), u64::MAX);
        let c = controller("rrtp");
        assert_eq!(narrows_controller_mtu(c, 0), -1);
        narrows_controller_free(c);
    }
}

/// Numbers that a stream of calls is made of: equal in every run.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let x = *state >> 11;
    match x % 7 {
        0 => 0,
        1 => u64::MAX,
        2 => x % 2000,
        3 => x % 50_000_000,
        _ => x % 5_000_000_000,
    }
}

#[test]
fn controllers_survive_calls_in_any_order() {
    for name in ["reno", "cubic", "bbr", "bbr3", "vegas", "copa", "stpd", "scream", "rrtp"] {
        let c = controller(name);
        assert!(!c.is_null(), "{name}");
        let mut s = 1;
        for _ in 0..5000 {
            // Times of decades end every measurement.
            let now = draw(&mut s) % (1 << 40);
            // SAFETY: the controller is alive, and this thread alone uses it.
            unsafe {
                let result = match draw(&mut s) % 8 {
                    0 | 1 => narrows_controller_sent(c, now, draw(&mut s), draw(&mut s)),
                    2 => {
                        let number = draw(&mut s);
                        let bytes = draw(&mut s);
                        narrows_controller_acked(c, now, number, draw(&mut s), bytes, draw(&mut s))
                    }
                    3 => narrows_controller_acks_end(c, now, draw(&mut s), 1),
                    4 => narrows_controller_lost(c, draw(&mut s)),
                    5 => narrows_controller_losses_end(
                        c,
                        now,
                        draw(&mut s),
                        draw(&mut s) % 100_000,
                        0,
                    ),
                    6 => narrows_controller_marked(c, now, draw(&mut s)),
                    _ => narrows_controller_spurious(c),
                };
                assert_eq!(result, 0, "{name}");
                assert!(narrows_controller_window(c) >= 1, "{name}");
            }
        }
        // SAFETY: alive, and freed once.
        unsafe { narrows_controller_free(c) };
    }
}

#[test]
fn datagram_larger_than_the_buffer_is_kept() {
    let text = CString::new("8Mbit/s,1ms").unwrap();
    let address = |last| {
        let mut ip = [0; 16];
        ip[..4].copy_from_slice(&[10, 0, 0, last]);
        Address { ip, is_ipv6: 0, port: 7 }
    };
    let here = address(1);
    let there = address(2);
    let mut node = -1;
    let mut from = here;
    let mut to = here;
    let mut ecn = 9;
    let mut size = 0;
    let mut payload = [0; 100];
    // SAFETY: the network is alive until it is freed; all places are writable and have the given sizes.
    unsafe {
        let n = narrows_network_new(text.as_ptr(), 1, null_mut(), 0);
        let sent = [5; 100];
        let accept = |node, ecn, size, segment| {
            narrows_network_accept(n, 0, node, &here, &there, ecn, sent.as_ptr(), size, segment)
        };
        assert_eq!(accept(9, 0, 100, 0), -1, "no such node");
        assert_eq!(accept(-1, 0, 100, 0), -1);
        assert_eq!(accept(0, 4, 100, 0), -1, "no ECN field");
        assert_eq!(accept(0, 0, 70_000, 0), -1, "too large");
        assert_eq!(accept(0, 0, 100, 1), -1, "segments too small");
        assert_eq!(accept(0, 2, 100, 0), 0);
        let mut poll = |capacity| {
            let payload = payload.as_mut_ptr();
            let size = &raw mut size;
            narrows_network_poll(
                n, 9_000_000, &mut node, &mut from, &mut to, &mut ecn, payload, capacity, size,
            )
        };
        assert_eq!(poll(99), -2);
        assert_eq!(poll(100), 1);
        assert_eq!(poll(100), 0);
        assert_eq!(
            narrows_network_poll(
                n,
                0,
                null_mut(),
                &mut from,
                &mut to,
                &mut ecn,
                null_mut(),
                0,
                &mut size
            ),
            -1
        );
        narrows_network_free(n);
    }
    assert_eq!((node, ecn, size, payload[99], to.ip), (1, 2, 100, 5, there.ip));
}
