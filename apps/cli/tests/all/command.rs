//! The command itself: exit codes, one line per error, no partial output.

use std::path::Path;
use std::process::{Command, Output};

fn narrows(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).current_dir(folder).args(args).output().unwrap()
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn compare_prints_json_writes_its_files_and_run_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["compare", "--protocols", "reno,stpd", "--duration", "3s", "--seeds", "2", "--json"];
    let out = narrows(folder.path(), &[&args[..], &["--save", "s.toml", "--out", "a"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(out.stderr.is_empty());
    let first: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for file in [
        "summary.json",
        "summary.csv",
        "seeds.csv",
        "seeds.parquet",
        "series.parquet",
        "report.html",
    ] {
        assert!(folder.path().join("a").join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let mut left = std::fs::read_dir(folder.path().join("a")).unwrap().flatten();
    assert!(left.all(|f| !f.file_name().to_string_lossy().ends_with(".part")));
    let saved = std::fs::read(folder.path().join("a/summary.json")).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&saved).unwrap(), first);
    let out = narrows(folder.path(), &["run", "s.toml", "--json", "--out", "b"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let again: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(again["results"], first["results"]);
    assert_eq!(
        (again["command"].as_str(), first["command"].as_str()),
        (Some("run"), Some("compare"))
    );
}

/// `--change` and `--reconfigure` reach the simulator in `compare` and `run`: a path that becomes slower carries less.
/// `rrtp-lasthop` keeps the hinted rate, so it carries more after a new hint.
#[test]
fn a_path_changes_and_applications_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let usual = ["--link", "10Mbit/s,5ms", "--protocols", "rrtp-lasthop", "--seeds", "10"];
    let change = ["--change", "5s:rate=1Mbit/s", "--change", "10s:rate=10Mbit/s"];
    let reconfigured =
        ["--reconfigure", "5s:rate=1Mbit/s", "--reconfigure", "10s:main:rate=10Mbit/s"];
    let goodput = |args: &[&[&str]]| {
        let out = narrows(folder.path(), &args.concat());
        let json = text(&out.stdout);
        let json: serde_json::Value =
            serde_json::from_str(&json).unwrap_or_else(|_| panic!("{}", text(&out.stderr)));
        json["results"][0]["goodput_bps"]["mean"].as_f64().unwrap()
    };
    let short: &[&str] = &["--duration", "20s", "--json"];
    let compare: &[&str] = &["compare"];
    let steady = goodput(&[compare, &usual, short]);
    let save: &[&str] = &["--save", "changing.toml"];
    let changed = goodput(&[compare, &usual, &change, save, short]);
    let said = goodput(&[compare, &usual, &change, &reconfigured, short]);
    assert!(changed < 0.8 * steady, "{changed} of {steady}");
    assert!(said > 1.2 * changed, "{said} of {changed}");
    let run: &[&str] = &["run", "changing.toml", "--json"];
    assert_eq!((goodput(&[run]), goodput(&[run, &reconfigured])), (changed, said));
}

#[test]
fn an_attack_leaves_scenarios_that_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["attack", "cubic", "--budget", "16", "--duration", "2s", "--worst", "1", "--json"];
    let found = narrows(folder.path(), &args);
    assert!(found.status.success(), "{}", text(&found.stderr));
    let json: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let worst = &json["worst"][0];
    assert!(worst["badness"].as_f64().unwrap() > 1.0, "{worst}");
    let scenario = worst["scenario"].as_str().unwrap();
    assert!(folder.path().join(worst["report"].as_str().unwrap()).is_file());
    let again = narrows(folder.path(), &["run", scenario, "--json"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    for (wrong, said) in [
        (["attack", "rneo", "--budget", "16"], "unknown protocol 'rneo'; did you mean 'reno'?"),
        (["attack", "reno", "--budget", "3"], "a number from 16 to 1000000 is expected"),
        (["attack", "reno", "--hunt", "speed"], "unknown aim 'speed'"),
    ] {
        let refused = narrows(folder.path(), &wrong);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
    }
}

/// The scorecard writes its page, figures and networks, and one of the networks can be run again.
#[test]
fn a_scorecard_leaves_a_page_and_networks_that_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["scorecard", "vegas", "--section", "5.1.5", "--seeds", "2", "--json"];
    let card = narrows(folder.path(), &args);
    assert!(card.status.success(), "{}", text(&card.stderr));
    let json: serde_json::Value = serde_json::from_slice(&card.stdout).unwrap();
    let criteria = json["criteria"].as_array().unwrap();
    assert_eq!(criteria.len(), 4);
    let out = folder.path().join("narrows-scorecard");
    let page = std::fs::read_to_string(out.join("scorecard.md")).unwrap();
    let html = std::fs::read_to_string(out.join("scorecard.html")).unwrap();
    for c in criteria {
        assert!(page.contains(c["network"].as_str().unwrap()));
        assert!(html.contains(c["network"].as_str().unwrap()));
        assert!(html.contains(c["scenario"].as_str().unwrap()));
        assert!(out.join(c["scenario"].as_str().unwrap()).is_file());
        assert!(c["figures"][0]["cubic"].as_f64().unwrap() > 0.0);
    }
    let again = narrows(&out, &["run", "scenarios/5.1.5-4.toml", "--json"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    for (wrong, said) in [
        (
            ["scorecard", "vegsa", "--seeds", "2"],
            "narrows: unknown protocol 'vegsa'; did you mean 'vegas'?",
        ),
        (
            ["scorecard", "vegas,reno", "--seeds", "2"],
            "narrows: 'vegas,reno': one protocol is expected, not several",
        ),
        (["scorecard", "vegas", "--section", "9"], "--section '9': nothing is measured for it"),
    ] {
        let refused = narrows(folder.path(), &wrong);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
    }
}

/// One network of each part: the table has every protocol, and JSON the figures of each network.
#[test]
fn a_scorecard_on_random_networks_prints_a_table_or_json() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["scorecard", "vegas(alpha=2)", "--networks=1"];
    let table = narrows(folder.path(), &args);
    assert!(table.status.success(), "{}", text(&table.stderr));
    let table = text(&table.stdout);
    let head: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["vegas(alpha=", "cubic", "bbr3", "rrtp"]);
    let harm = table.lines().find(|l| l.contains("no more harm than CUBIC")).unwrap();
    assert_eq!(harm.split_whitespace().nth(6), Some("1.00"), "CUBIC's own: {harm}");
    let json = narrows(folder.path(), &[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let networks = json["networks"].as_array().unwrap();
    assert_eq!(networks.len(), 3);
    for network in networks {
        assert_eq!(network["figures"].as_object().unwrap().len(), 4, "{network}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let refused = narrows(folder.path(), &["scorecard", "vegsa", "--networks"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("did you mean 'vegas'?"), "{}", text(&refused.stderr));
}

/// The command in the error for a table of rates converts the file to a trace, which a link accepts.
#[test]
fn a_record_of_rates_becomes_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rates.csv"), "\u{feff}time_s,mbps\r\n0,4\r\n1,2\r\n")
        .unwrap();
    let link = |file: &str| {
        let link = format!("1Mbit/s,5ms,trace={file},trace-start=0s");
        narrows(
            folder.path(),
            &["compare", "--link", &link, "--protocols", "reno", "--duration", "4s", "--json"],
        )
    };
    let refused = link("rates.csv");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("narrows trace convert"), "{}", text(&refused.stderr));
    let converted = narrows(folder.path(), &["trace", "convert", "rates.csv"]);
    assert!(converted.status.success(), "{}", text(&converted.stderr));
    assert!(
        text(&converted.stderr).contains("2.000 s: 3.000 Mbit/s"),
        "{}",
        text(&converted.stderr)
    );
    std::fs::write(folder.path().join("link.trace"), &converted.stdout).unwrap();
    let ran = link("link.trace");
    assert!(ran.status.success(), "{}", text(&ran.stderr));
}

#[test]
fn compare_over_several_paths_says_they_are_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let compare = |second: &str| {
        let paths = ["compare", "--path", "3Mbit/s,10ms", "--path", second];
        narrows(folder.path(), &[&paths[..], &["--duration", "2s", "--seeds", "2"]].concat())
    };
    let both = compare("2Mbit/s,40ms");
    let shown = text(&both.stdout) + &text(&both.stderr);
    assert!(both.status.success() && shown.contains("several paths are simulated only"), "{shown}");
    let unknown = compare("nonsense");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).starts_with("narrows: --path: unknown link 'nonsense'"));
}

#[test]
fn a_sweep_writes_its_files_and_runs_no_point_twice() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["sweep", "--duration", "2s", "--vary", "loss=0%,1%,5%", "--seeds", "2", "--json"];
    let first = narrows(folder.path(), &[&args[..], &["--vary", "flows=1,2"]].concat());
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(first.stderr.is_empty());
    let json: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(json["points"].as_array().unwrap().len(), 6);
    assert_eq!(json["points"][5]["values"]["loss"], 0.05);
    let out = folder.path().join("narrows-out");
    for file in ["sweep.csv", "points.csv", "sweep.parquet", "points.parquet", "report.html"] {
        assert!(out.join(file).metadata().unwrap().len() > 0, "{file}");
    }
    let csv = std::fs::read(out.join("sweep.csv")).unwrap();
    assert_eq!(text(&csv).lines().count(), 1 + 6 * 2);
    // A larger grid runs only the new points; other flags make other runs.
    let more = narrows(folder.path(), &[&args[..], &["--vary", "flows=1,2,4"]].concat());
    assert!(text(&more.stderr).contains("12 of 18 runs were already"), "{}", text(&more.stderr));
    let other = ["--vary", "flows=1,2", "--packet", "500B"];
    let other = narrows(folder.path(), &[&args[..], &other].concat());
    assert!(other.stderr.is_empty(), "{}", text(&other.stderr));
    let fresh = narrows(folder.path(), &[&args[..], &["--vary", "flows=1,2", "--fresh"]].concat());
    assert!(fresh.stderr.is_empty());
    assert_eq!(std::fs::read(out.join("sweep.csv")).unwrap(), csv);
}

/// The tasks of the array script, run in sequence by a shell, leave no runs for the final command.
#[cfg(unix)]
#[test]
fn an_array_script_runs_the_sweep_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "--vary", "loss=0%,1%", "--seeds", "2", "--duration", "2s", "--json"];
    let script = narrows(folder.path(), &[&sweep[..], &["--slurm=3"]].concat());
    assert!(script.status.success(), "{}", text(&script.stderr));
    let script = text(&script.stdout);
    assert!(script.contains("#SBATCH --array=1-3\n"), "{script}");
    assert!(!folder.path().join("narrows-out").exists(), "nothing runs yet");
    let binary = Path::new(env!("CARGO_BIN_EXE_narrows")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for task in ["1", "2", "3"] {
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(folder.path()).env("PATH", &path);
        let done = shell.env("SLURM_ARRAY_TASK_ID", task).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let together = narrows(folder.path(), &sweep);
    let said = text(&together.stderr);
    assert!(said.contains("4 of 4 runs were already in"), "{said}");
    let alone = narrows(folder.path(), &[&sweep[..], &["--out", "alone"]].concat());
    let numbers = |output: &Output| {
        let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        all["points"].clone()
    };
    assert_eq!(numbers(&together), numbers(&alone));
}

#[test]
fn everything_listed_can_be_shown_in_detail() {
    let folder = tempfile::tempdir().unwrap();
    let bare = narrows(folder.path(), &[]);
    assert!(bare.status.success() && text(&bare.stdout).contains("narrows compare"));
    let all = narrows(folder.path(), &["list", "--json"]);
    let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
    let all = all.as_array().unwrap();
    assert!(all.len() > 40);
    for kind in narrows_lab::catalogue::KINDS {
        let item = all.iter().find(|i| i["kind"] == *kind).unwrap();
        let name = item["name"].as_str().unwrap();
        let out = narrows(folder.path(), &["list", kind, name]);
        assert!(out.status.success() && text(&out.stdout).contains("status"), "{kind} {name}");
    }
}

#[test]
fn a_relay_can_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let relay = ["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--link", "geo"];
    let rest = ["--duration", "100ms", "--record", "rec", "--json"];
    let out = narrows(folder.path(), &[&relay[..], &rest[..]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("recorded 0 datagrams into rec"), "{}", text(&out.stderr));
    assert!(text(&out.stdout).starts_with('{'), "the standard output is for the result");
    for file in ["packets.pcapng", "series.parquet", "report.html", "summary.json"] {
        assert!(folder.path().join("rec").join(file).is_file(), "{file}");
    }
    assert!(!folder.path().join("rec/connection-1.sqlog").exists());
}

#[test]
fn families_stand_beside_names_and_rrtp_is_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let names = |list: &str| -> Vec<String> {
        let args =
            ["compare", "--protocols", list, "--duration", "200ms", "--seeds", "1", "--json"];
        let out = narrows(folder.path(), &args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let results = json["results"].as_array().unwrap();
        results.iter().map(|r| r["protocol"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names("rrtp"), ["rrtp"]);
    let both = names("media,rrtp");
    assert!(both.len() > 4 && both.last().unwrap() == "rrtp", "{both:?}");
}

#[test]
fn the_command_explains_itself() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let out = narrows(folder.path(), args);
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    assert_eq!(said(&["help", "compare"]), said(&["compare", "--help"]));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = said(&["completions", shell]);
        assert!(script.contains("protocols") && script.contains("compare"), "{shell}");
    }
    let page = said(&["man"]);
    assert!(page.contains(".TH narrows 1") && page.contains("narrows\\-compare"), "{page}");
    assert!(said(&["man", "compare"]).contains("\\-\\-protocols"));
}

/// Control characters in a file's names are escaped.
#[test]
fn names_of_a_file_do_not_reach_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    let odd = "\u{200b}A\u{e0041}\u{202e}";
    let scenario = format!(
        "name = \"\\u001B[31m{odd}\"\nduration = \"1s\"\n[[link]]\nname = \"l{odd}\"\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[flows]]\nname = \"f{odd}\"\nprotocol = \"reno\"\n\
         from = \"a\"\nto = \"b\"\n"
    );
    std::fs::write(folder.path().join("s.toml"), scenario).unwrap();
    let hidden = |c: char| c != '\n' && narrows_base::text::is_hidden(c);
    for args in [&["run", "s.toml"][..], &["run", "s.toml", "--json"]] {
        let out = narrows(folder.path(), args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let shown = text(&out.stdout);
        assert!(!shown.contains(hidden), "{shown:?}");
        assert!(shown.contains(r"\u{200b}") || shown.contains(r"\u200b"), "{shown}");
    }
    let out = narrows(folder.path(), &["run", "s.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["results"][0]["group"], format!("f{odd}"), "programs get the name as it is");
    for file in ["report.html", "comparison.svg"] {
        let page = std::fs::read_to_string(folder.path().join("narrows-out").join(file)).unwrap();
        let place = page.find(odd).map(|at| &page[at.saturating_sub(80)..at]);
        assert_eq!(place, None, "{file}");
    }
}

/// Whether the process has a handler for Ctrl-C, so that an interruption will not simply end it.
#[cfg(target_os = "linux")]
fn catches_interrupt(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).unwrap_or(0) & 2 != 0
}

/// The CPU time of the process, in hundredths of a second; `None` after its end.
#[cfg(target_os = "linux")]
fn clock_ticks(id: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The fields after the command's name, which may contain spaces: state is the third field, utime the 14th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[cfg(target_os = "linux")]
#[test]
fn interruption_exits_130_and_keeps_finished_runs() {
    for (args, kept) in [
        (&["compare", "--seeds", "100000", "--duration", "1s"][..], "report.html"),
        (
            &["sweep", "--vary", "loss=1%,2%", "--seeds", "100000", "--duration", "1s"],
            "sweep.journal",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_narrows"));
        child.current_dir(folder.path()).args(args);
        child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = child.spawn().unwrap();
        while !catches_interrupt(child.id()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // Wait for some of the runs; there are far more than can finish. Measure CPU time, because on a loaded machine
        // no run may have finished after any wall-clock time.
        while clock_ticks(child.id()).is_some_and(|ticks| ticks < 100) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let out = child.wait_with_output().unwrap();
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(130), "{args:?}: {err}");
        // On a busy machine, progress was printed before.
        let mut lines = err.lines().filter(|line| !line.contains("% done"));
        assert!(lines.next().is_some_and(|l| l.contains("interrupted")), "{args:?}: {err}");
        assert_eq!(lines.next(), None, "{args:?}: {err}");
        assert!(folder.path().join("narrows-out").join(kept).exists(), "{args:?}: {err}");
    }
}

/// If a file of a run cannot be written, the error lists those that exist.
#[test]
fn an_incomplete_output_says_which_files_it_has() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("out/report.html")).unwrap();
    let run = ["compare", "--protocols", "cubic", "--duration", "1s", "--seeds", "1"];
    let out = narrows(folder.path(), &[&run[..], &["--out", "out"]].concat());
    let line = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{line}");
    assert!(line.contains("out/report.html"), "{line}");
    assert!(line.contains("of this run there are only summary.json, summary.csv"), "{line}");
}

/// `--plot` writes a column over time beside the other files; an unknown one is refused.
#[test]
fn a_column_over_time_is_plotted() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        ["compare", "--protocols", "cubic,rrtp", "--duration", "1s", "--seeds", "1", "--plot"];
    let out = narrows(folder.path(), &[&run[..], &["cwnd"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let figure = std::fs::read_to_string(folder.path().join("narrows-out/cwnd.svg")).unwrap();
    assert!(figure.contains("cubic") && figure.contains("rrtp"), "{figure}");
    let out = narrows(folder.path(), &[&run[..], &["cwmd"]].concat());
    let line = text(&out.stderr);
    assert!(out.status.code() == Some(2) && line.contains("--plot: unknown column"), "{line}");
}
