//! Names with several addresses, some of which do not answer.

use std::process::Command;

#[test]
#[cfg(target_os = "linux")]
fn dialled_name_is_reached_at_its_second_address() {
    let is_possible = Command::new("unshare")
        .args(["--mount", "--net", "ip", "tuntap", "add", "dev", "hole", "mode", "tun"])
        .output();
    if !is_possible.is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: needs root and iproute2");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let out = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", include_str!("addresses.sh")])
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path().join("config"))
        .env("NARROWS", env!("CARGO_BIN_EXE_narrows"))
        .output()
        .unwrap();
    let of = |name: &str, address: &str| {
        let port = |n: u16| format!("connected to 127.0.0.1:4747{n} ([{address}]:4747{n}: \n");
        format!(
            "{name} rrtp hello\n{name} tcp hello\n{name} speed 0\n{name} probe --tcp 0\n{}{}",
            port(1),
            port(2)
        )
    };
    let wanted = of("dead", "fd98::66") + &of("refusing", "::1") + "relay hello\ndead probe 0\n";
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert_eq!(stdout, wanted, "{}", String::from_utf8_lossy(&out.stderr));
}
