//! Converts other records to Mahimahi traces: times of packets, rates over time, CSV with a header.

use narrows_base::{Duration, SpecError};
use narrows_link::trace::{MAX_GAP_MS, OPPORTUNITY_BYTES, lines, quoted};

/// Limit on the opportunities of a converted trace: ten million, as many as a trace file may have.
const MAX_OPPORTUNITIES: usize = 10_000_000;

const NANOS_PER_MS: f64 = 1e6;
const OPPORTUNITY_BITS: f64 = OPPORTUNITY_BYTES as f64 * 8.0;

/// Units of times, and nanoseconds of each.
const TIME_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// Units of rates, and bit/s of each.
const RATE_UNITS: [(&str, f64); 8] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
];

/// Properties of a file that it may not contain.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// Unit of the times: s, ms, us or ns.
    pub time: Option<String>,
    /// Unit of the rates: bit/s, kbit/s, Mbit/s, Gbit/s, or B/s with the same prefixes.
    pub rate: Option<String>,
    /// The file has rates only, one per this interval.
    pub every: Option<Duration>,
    /// Numbers of the columns, from 1: times, then rates.
    pub columns: Option<Vec<usize>>,
}

/// Columns of times and rates, and their units in nanoseconds and bit/s.
#[derive(Default)]
struct TraceColumns {
    time: Option<(usize, f64)>,
    rate: Option<(usize, f64)>,
}

/// The lines of a Mahimahi trace: whole milliseconds of opportunities of 1500 bytes.
///
/// A file of times alone has one opportunity a line. A rate holds until the next line, the last as long as the one before
/// it. Times count from the first line of a file of rates, or if the first is more than a day after 0.
///
/// # Errors
/// A unit is missing or unknown, or a line cannot be read; the message names the line.
pub fn convert(text: &str, form: &Form) -> Result<Vec<u64>, SpecError> {
    let mut rows = lines(text).peekable();
    let Some(&(_, first)) = rows.peek() else { return Err(SpecError::new("the file is empty")) };
    let separator = separator(first);
    let header = cells(first, separator).iter().all(|c| number(c, separator).is_none());
    let names = if header { cells(first, separator) } else { Vec::new() };
    if header {
        rows.next();
    }
    let columns = columns(&names, cells(first, separator).len(), form)?;
    let mut times = Vec::new();
    let mut rates = Vec::new();
    for (at, line) in rows {
        let cells = cells(line, separator);
        let value = |(column, unit): (usize, f64)| {
            let read = cells.get(column - 1).and_then(|c| number(c, separator));
            read.filter(|x| *x >= 0.0).map(|x| x * unit).ok_or_else(|| {
                let is_clock = cells.get(column - 1).is_some_and(|cell| cell.contains(':'));
                let hint = if is_clock { "; `date -d TIME +%s.%N` prints seconds" } else { "" };
                let why =
                    format!("{}has no number of 0 or more in column {column}{hint}", quoted(line));
                SpecError::new(format!("line {at}: {why}"))
            })
        };
        let time = match (columns.time, form.every) {
            (Some(column), _) => value(column)?,
            (None, Some(every)) => every.as_nanos() as f64 * times.len() as f64,
            (None, None) => return Err(SpecError::new(NO_TIME)),
        };
        if times.last().is_some_and(|last| *last > time) {
            let why = "is before the line above it; times must not run backwards";
            return Err(SpecError::new(format!("line {at}: {}{why}", quoted(line))));
        }
        times.push(time);
        if let Some(column) = columns.rate {
            rates.push(value(column)?);
        }
        if times.len() > MAX_OPPORTUNITIES {
            return Err(too_many());
        }
    }
    let out = match columns.rate {
        Some(_) => of_rates(&times, &rates, form.every)?,
        None => of_times(&times)?,
    };
    if out.last().is_none_or(|last| *last == 0) {
        return Err(SpecError::new("the record has no length: two times are needed at least"));
    }
    Ok(out)
}

const NO_TIME: &str = "the unit of the times is missing: --time s, ms, us or ns; a file of rates alone needs --every 1s";

fn too_many() -> SpecError {
    SpecError::new(format!("the trace would have more than {MAX_OPPORTUNITIES} opportunities"))
}

/// The separator of cells: `;`, a tab or `,` if the first line has one, else white space. Columns aligned by several tabs
/// count as separated by white space.
fn separator(first: &str) -> Option<char> {
    let is_aligned = first.split('\t').any(|cell| cell.trim().is_empty());
    let has = |c: char| first.contains(c) && !(c == '\t' && is_aligned);
    [';', '\t', ','].into_iter().find(|c| has(*c))
}

fn cells(line: &str, separator: Option<char>) -> Vec<&str> {
    match separator {
        Some(separator) => line.split(separator).map(bare).collect(),
        None => line.split_whitespace().map(bare).collect(),
    }
}

/// A cell without CSV's quotes.
fn bare(cell: &str) -> &str {
    cell.trim().trim_matches('"').trim()
}

/// A finite number. With the separator `;` or a tab, a comma is a decimal one.
fn number(cell: &str, separator: Option<char>) -> Option<f64> {
    let cell =
        if matches!(separator, Some(';' | '\t')) { cell.replace(',', ".") } else { cell.into() };
    cell.parse::<f64>().ok().filter(|x| x.is_finite())
}

/// The columns: from the form, else from the header's names, else by their order.
fn columns(names: &[&str], count: usize, form: &Form) -> Result<TraceColumns, SpecError> {
    let unit = |text: &Option<String>, units: &[(&str, f64)], what: &str| match text {
        None => Ok(None),
        Some(text) => match units.iter().find(|(name, _)| name == text) {
            Some((_, unit)) => Ok(Some(*unit)),
            None => {
                let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
                Err(SpecError::unknown(what, text, &known))
            }
        },
    };
    let time = unit(&form.time, &TIME_UNITS, "unit of time")?;
    let rate = unit(&form.rate, &RATE_UNITS, "unit of rate")?;
    let found = TraceColumns::of_names(names);
    let (first, second) = match form.columns.as_deref() {
        Some([first, second]) if *first > 0 && *second > 0 => (*first, Some(*second)),
        Some([first]) if *first > 0 => (*first, None),
        Some(_) => return Err(SpecError::new("columns are one or two numbers from 1: 1,3")),
        None if found.time.is_some() || found.rate.is_some() => {
            let first = found.time.or(found.rate).map_or(1, |c| c.0);
            (first, found.rate.map(|c| c.0))
        }
        None if count > 2 => {
            return Err(SpecError::new(format!(
                "the file has {count} columns: --columns TIME,RATE says which"
            )));
        }
        None => (1, (count == 2).then_some(2)),
    };
    let named = |column: usize, side: &Option<(usize, f64)>| {
        side.filter(|(at, unit)| *at == column && *unit > 0.0).map(|(_, unit)| unit)
    };
    if form.every.is_some() {
        let column = second.unwrap_or(first);
        let rate = rate.or(named(column, &found.rate)).ok_or_else(no_rate)?;
        return Ok(TraceColumns { time: None, rate: Some((column, rate)) });
    }
    let time = time.or(named(first, &found.time)).ok_or_else(|| SpecError::new(NO_TIME))?;
    let rate = match second {
        Some(column) => Some((column, rate.or(named(column, &found.rate)).ok_or_else(no_rate)?)),
        None if rate.is_some() => {
            return Err(SpecError::new("the file has one column: rates alone need --every 1s"));
        }
        None => None,
    };
    Ok(TraceColumns { time: Some((first, time)), rate })
}

fn no_rate() -> SpecError {
    SpecError::new("the unit of the rates is missing: --rate bit/s, kbit/s, Mbit/s or MB/s")
}

impl TraceColumns {
    /// Columns with names of times and rates. A unit that is not in the name is 0.
    fn of_names(names: &[&str]) -> TraceColumns {
        let mut found = TraceColumns::default();
        for (i, name) in names.iter().enumerate() {
            let word = name.to_lowercase();
            let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
            if found.rate.is_none()
                && (has(&[
                    "rate",
                    "throughput",
                    "bandwidth",
                    "goodput",
                    "capacity",
                    "bps",
                    "bit/s",
                ]) || rate_unit(name).is_some())
            {
                found.rate = Some((i + 1, rate_unit(name).unwrap_or(0.0)));
            } else if found.time.is_none()
                && (has(&["time"]) || word == "t" || time_unit(name).is_some())
            {
                found.time = Some((i + 1, time_unit(name).unwrap_or(0.0)));
            }
        }
        found
    }
}

/// The unit in a column's name: `time_ms`, `Time (s)`, `timestamp [us]`.
fn time_unit(name: &str) -> Option<f64> {
    let word = name.to_lowercase();
    let mut parts = word.split(|c: char| !c.is_alphanumeric());
    parts.find_map(|part| match part {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1e9),
        "ms" | "msec" | "milliseconds" | "millis" => Some(1e6),
        "us" | "usec" | "microseconds" | "micros" => Some(1e3),
        "ns" | "nsec" | "nanoseconds" | "nanos" => Some(1.0),
        _ => None,
    })
}

/// The unit in a column's name: `throughput_mbps`, `rate (Mbit/s)`. `B` is bytes, `b` bits.
fn rate_unit(name: &str) -> Option<f64> {
    let mut parts = name.split(|c: char| !c.is_alphanumeric() && c != '/');
    parts.find_map(|part| {
        let stem = ["bps", "bit/s", "bits/s", "b/s"].iter().find_map(|end| {
            part.to_lowercase()
                .strip_suffix(end)
                .map(|stem| (stem.to_string(), part.len() - end.len()))
        });
        let (prefix, at) = stem?;
        let bytes = part[at..].starts_with('B');
        let scale = match prefix.as_str() {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            _ => return None,
        };
        Some(if bytes { 8.0 * scale } else { scale })
    })
}

/// Milliseconds, rounded up, but ignoring a float's rounding error.
fn millis(ns: f64) -> u64 {
    (ns / NANOS_PER_MS - 1e-6).ceil().max(0.0) as u64
}

fn gap(i: usize, from: f64, to: f64) -> Result<(), SpecError> {
    if to - from > MAX_GAP_MS as f64 * NANOS_PER_MS {
        let why = "the time leaves out more than a day; is the unit right?";
        return Err(SpecError::new(format!("value {}: {why}", i + 1)));
    }
    Ok(())
}

/// One opportunity at each time.
fn of_times(times: &[f64]) -> Result<Vec<u64>, SpecError> {
    let first = times.first().copied().unwrap_or(0.0);
    // No link waits a day for its first packet: such times are those of a clock.
    let origin = if first > MAX_GAP_MS as f64 * NANOS_PER_MS { first } else { 0.0 };
    let mut last = origin;
    let one = |(i, time): (usize, &f64)| {
        gap(i, last, *time)?;
        last = *time;
        Ok(millis(time - origin))
    };
    times.iter().enumerate().map(one).collect()
}

/// An opportunity for each 1500 bytes that the rates carry, and one at the end, which sets the trace's length.
fn of_rates(times: &[f64], rates: &[f64], every: Option<Duration>) -> Result<Vec<u64>, SpecError> {
    let origin = times.first().copied().unwrap_or(0.0);
    let last = match (every, times) {
        (Some(every), _) => every.as_nanos() as f64,
        (None, [.., a, b]) => b - a,
        (None, _) => 0.0,
    };
    let end = times.last().copied().unwrap_or(0.0) + last;
    let ends = times.iter().skip(1).copied().chain([end]);
    let mut out = Vec::new();
    let mut carried = 0.0;
    for (i, ((from, until), rate)) in times.iter().zip(ends).zip(rates).enumerate() {
        gap(i, *from, until)?;
        let bits = rate * (until - from) / 1e9;
        let mut due = OPPORTUNITY_BITS - carried;
        if bits / OPPORTUNITY_BITS > (MAX_OPPORTUNITIES - out.len()) as f64 {
            return Err(too_many());
        }
        // A millionth of a bit is a float's rounding error.
        while due <= bits + 1e-6 {
            out.push(millis(from - origin + due / rate * 1e9));
            due += OPPORTUNITY_BITS;
        }
        carried = OPPORTUNITY_BITS - (due - bits);
    }
    if out.is_empty() {
        return Err(SpecError::new(
            "the rates carry less than 1500 bytes in all: is the unit right?",
        ));
    }
    let end = millis(end - origin);
    if out.last().is_some_and(|last| *last < end) {
        out.push(end);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_link::Trace;

    fn form(time: &str, rate: &str) -> Form {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Form { time: some(time), rate: some(rate), ..Form::default() }
    }

    #[test]
    fn times_become_opportunities_rounded_up() {
        let half = convert("0.5\n1.0\n1.5\n2.0\n", &form("ms", "")).unwrap();
        assert_eq!(half, [1, 1, 2, 2]);
        assert_eq!(convert("0.0005\n0.001\n2\n", &form("s", "")).unwrap(), [1, 1, 2000]);
        assert_eq!(convert("900\n1000\n1001", &form("us", "")).unwrap(), [1, 1, 2]);
        // A clock's times begin at the first.
        let epoch = convert("1448000000000\n1448000000012\n", &form("ms", "")).unwrap();
        assert_eq!(epoch, [0, 12]);
        assert_eq!(convert("1448000000.000\n1448000000.012\n", &form("s", "")).unwrap(), [0, 12]);
    }

    #[test]
    fn a_rate_carries_as_many_bytes_as_it_says() {
        let constant = convert("10 5\n11 5\n", &form("s", "Mbit/s")).unwrap();
        assert_eq!(constant[..8], [3, 5, 8, 10, 12, 15, 17, 20]);
        assert_eq!((constant.len(), constant.last()), (833, Some(&2000)));
        // 8 Mbit/s for 200 ms, then 2: the same in all forms and units.
        let want = convert("0 8\n0.2 2\n0.4 2\n", &form("s", "Mbit/s")).unwrap();
        for (text, time, rate) in [
            ("0,1000000\n0.2,250000\n0.4,250000\n", "s", "B/s"),
            ("\u{feff}time_ms;rate (kbit/s)\r\n0,0;8000\r\n200,0;2000\r\n400,0;2000\r\n", "", ""),
            ("seconds,ignored,throughput_mbps\n0,7,8\n# half\n0.2,7,2\n\n0.4,7,2\n", "", ""),
            (
                "Time [s],Bandwidth [MBps]\n1448000000,1\n1448000000.2,.25\n1448000000.4,.25\n",
                "",
                "",
            ),
            ("0\t8\n200\t2\n400\t2\n", "ms", "Mbit/s"),
            ("Time (s)\tRate (Mbit/s)\n0\t8\n0,2\t2\n0,4\t2\n", "", ""),
            ("time_s\t\tmbps\n0\t\t8\n0.2\t\t2\n0.4\t\t2\n", "", ""),
        ] {
            assert_eq!(convert(text, &form(time, rate)).unwrap(), want, "{text}");
        }
        let every = Some(Duration::from_millis(200));
        let alone = Form { every, ..form("", "Mbit/s") };
        assert_eq!(convert("8\n2\n2\n", &alone).unwrap(), want);
        let named = Form { every, ..Form::default() };
        assert_eq!(convert("mbps\n8\n2\n2\n", &named).unwrap(), want);
        let columns = Form { columns: Some(vec![2, 1]), ..form("ms", "Mbit/s") };
        assert_eq!(convert("8 0 x\n2 200 x\n2 400 x\n", &columns).unwrap(), want);
        let text: String = want.iter().map(|ms| format!("{ms}\n")).collect();
        let trace = Trace::parse(&text).unwrap();
        assert_eq!(trace.period(), Duration::from_millis(600));
        // 8 · 0.2 + 2 · 0.4 Mbit are 200 opportunities.
        assert_eq!(want.len(), 200);
    }

    #[test]
    fn an_outage_at_the_end_is_part_of_the_length() {
        let out = convert("0 12\n1 0\n2 0\n", &form("s", "kbit/s")).unwrap();
        assert_eq!(out, [1000, 3000]);
    }

    #[test]
    fn ambiguous_trace_needs_an_option() {
        for (text, form, hint) in [
            ("", form("s", ""), "empty"),
            ("1\n2\n", form("", ""), "--time s, ms, us or ns"),
            ("1\n2\n", form("h", ""), "unknown unit of time 'h'"),
            ("1\n2\n", form("", "Mbit/s"), "--time"),
            ("1\n2\n", form("s", "Mbit/s"), "--every"),
            ("1 2\n2 3\n", form("s", ""), "--rate bit/s"),
            ("1 2\n2 3\n", form("s", "mbps"), "unknown unit of rate"),
            ("1 2 3\n2 3 4\n", form("s", "bit/s"), "--columns"),
            ("time,rate\n1,2\n", form("", ""), "--time"),
            ("time_s,rate\n1,2\n", form("", ""), "--rate"),
            ("1 2\n0 2\n", form("s", "bit/s"), "line 2: '0 2' is before"),
            ("1 2\n2 x\n", form("s", "bit/s"), "line 2: has no number"),
            ("1 2\n2 -1\n", form("s", "bit/s"), "line 2: '2 -1' has no number of 0 or more"),
            ("1 2\n2 NaN\n", form("s", "bit/s"), "line 2"),
            ("1 2\n2\n", form("s", "bit/s"), "line 2"),
            ("1 2\n2 2\n", form("s", "bit/s"), "less than 1500 bytes"),
            ("1 1e30\n2 2\n", form("s", "bit/s"), "more than 10000000"),
            ("0\n1e9\n", form("s", ""), "value 2: the time leaves out more than a day"),
            ("1 5\n", form("s", "Gbit/s"), "less than 1500"),
            ("0\n0\n", form("ms", ""), "no length"),
            ("root:hash:1\nx:hash:2\n", form("s", ""), "line 2: has no number"),
            ("2024-01-01T00:00:00,5\n", form("s", "Mbit/s"), "`date -d TIME +%s.%N`"),
        ] {
            let e = convert(text, &form).err().map_or(String::new(), |e| e.to_string());
            assert!(e.contains(hint) && e.lines().count() <= 1, "{text:?}: {e}");
            assert!(!e.contains("hash"), "{e}");
        }
    }
}
