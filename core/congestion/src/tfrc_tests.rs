use super::options::rounds_later;
use super::*;
use crate::Dialect;
use narrows_base::Spec;

fn options(text: &str, ns2: bool) -> Options {
    let spec = Spec::parse(text).unwrap();
    let settings = Settings::read(&spec, DESCRIPTOR.params).unwrap();
    let dialect = if ns2 { Dialect::Ns2 } else { Dialect::Rfc };
    Options::read(&settings, &Environment { dialect, ..Environment::default() })
}

#[test]
fn the_preset_follows_the_run_unless_told() {
    assert!(!options("tfrc", false).ns2 && options("tfrc", true).ns2);
    assert!(options("tfrc(preset=ns2)", false).ns2 && !options("tfrc(preset=rfc)", true).ns2);
    let o = options("tfrc", true);
    assert_eq!((o.q, o.reorder, o.equation.capped), (0.95, 1, true));
    let o = options("tfrc(reorder=3,q=0.9)", true);
    assert_eq!((o.q, o.reorder), (0.9, 3), "what is given stands");
    let o = options("tfrc", false);
    assert_eq!((o.q, o.reorder, o.equation.capped), (0.9, 3, false));
}

#[test]
fn the_initial_window_depends_on_the_packet() {
    let window = |packet_bytes, ns2| {
        let settings = Settings::defaults(DESCRIPTOR.params);
        let dialect = if ns2 { Dialect::Ns2 } else { Dialect::Rfc };
        let e = Environment { packet_bytes, dialect, ..Environment::default() };
        Options::read(&settings, &e).initial_window()
    };
    // min(4 MSS, max(2 MSS, 4380)).
    assert_eq!(window(1000, false), 4000.0);
    assert_eq!(window(1460, false), 4380.0);
    assert_eq!(window(9000, false), 18_000.0);
    // ns-2 counts packets: 4, 3 or 2.
    assert_eq!((window(1000, true), window(1460, true)), (4000.0, 4380.0));
    assert_eq!((window(1500, true), window(9000, true)), (4500.0, 18_000.0));
}

#[test]
fn rounds_wrap_without_confusion() {
    assert!(rounds_later(1, 0) && !rounds_later(0, 1) && !rounds_later(7, 7));
    assert!(rounds_later(3, u16::MAX) && !rounds_later(u16::MAX, 3));
}
