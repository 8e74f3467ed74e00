use super::{html, sample};
use narrows_lab::outcome::{Estimate, Outcome};

/// The page without the packed library, which is one long word of base64.
fn page(outcome: &Outcome) -> String {
    let page = html(outcome);
    let (before, after) = page.split_once("id=\"library\">").expect("the library has an element");
    let after = after.split_once("</script>").expect("its element ends").1;
    format!("{before}{after}")
}

/// The JSON of the charts.
fn data(page: &str) -> serde_json::Value {
    let data = page.split_once("id=\"data\">").expect("the data have an element").1;
    serde_json::from_str(data.split_once("</script>").expect("it ends").0).expect("valid JSON")
}

#[test]
fn every_protocol_has_its_row_and_its_charts() {
    let outcome = sample::outcome(&sample::NAMES, 1, 60.0, 0.1);
    let page = page(&outcome);
    let data = data(&page);
    for (i, name) in sample::NAMES.iter().enumerate() {
        assert!(page.contains(&format!("<a href=\"#p{i}\">{name}</a>")));
        assert!(page.contains(&format!("<article id=\"p{i}\"><h3>{name}")));
        assert_eq!(data["protocols"][i]["name"], *name);
        assert_eq!(data["protocols"][i]["panels"].as_array().map(Vec::len), Some(4));
    }
    assert!(page.find("Recommendation") < page.find("Comparison"));
    let figures = outcome.recommendation.sentences[0].strip_prefix("Use stpd: ").unwrap();
    for text in [">Use stpd<", figures, env!("CARGO_PKG_VERSION"), "not validated"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("narrows compare --link &#39;1.5Mbps,80ms,queue=30p,loss=1%&#39;"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

/// A mark on 198 ± 33 ms but not on 177 ± 0 would look like a mistake.
#[test]
fn no_mark_stands_behind_a_better_result_without_one() {
    let means = [(172.0, 0.0), (177.0, 0.0), (198.0, 33.0), (172.4, 0.5), (f64::NAN, 0.0)];
    let mut outcome = sample::outcome(&["a", "b", "c", "d", "e"], 1, 5.0, 0.1);
    for (result, (mean, half)) in outcome.results.iter_mut().zip(means) {
        let estimate = Estimate::symmetric(mean, Some(half));
        result.measures = vec![("retransmissions", estimate)];
    }
    let page = page(&outcome);
    let rows = page.split("<tr><th scope=\"row\"").skip(1).take(5);
    let marked: Vec<bool> = rows.map(|row| row.contains("class=\"good\"")).collect();
    assert_eq!(marked, [true, false, false, true, false]);
}

/// Headings are buttons, and scrollable areas can be scrolled by arrow keys.
#[test]
fn tables_work_without_a_mouse() {
    let page = page(&sample::outcome(&["reno", "vegas"], 2, 5.0, 0.1));
    for table in page.split("<table").skip(1) {
        let head = table.split("</thead>").next().expect("a head");
        assert_eq!(head.matches("<th ").count(), head.matches("<button type=\"button\"").count());
    }
    let regions = page.matches("tabindex=\"0\" role=\"region\" aria-label=").count();
    assert_eq!(page.matches("<table").count(), regions);
}

#[test]
fn page_loads_no_other_resource() {
    let page = page(&sample::outcome(&["reno"], 2, 5.0, 0.1)).to_lowercase();
    for address in ["http:", "https:", "src=", "//cdn", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_names_are_only_text() {
    let evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
    let mut outcome = sample::outcome(&["reno", "x"], 2, 5.0, 0.1);
    outcome.command_line = evil.into();
    outcome.link = evil.into();
    outcome.path = evil.into();
    outcome.recommendation.protocol = evil.into();
    outcome.recommendation.command = Some(evil.into());
    outcome.recommendation.sentences = vec![evil.into(), evil.into()];
    outcome.notes = vec![evil.into()];
    let result = &mut outcome.results[1];
    result.protocol = evil.into();
    result.group = evil.into();
    result.status = evil.into();
    result.per_flow[0].0 = evil.into();
    result.series[0].name = evil.into();
    let page = page(&outcome);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count() + 1);
    assert_eq!(data(&page)["protocols"][1]["name"], evil);
}

#[test]
fn missing_values_and_non_numbers_do_not_break_the_page() {
    let mut outcome = sample::outcome(&["reno", "vegas"], 1, 5.0, 0.1);
    outcome.results[0].measures.clear();
    outcome.results[0].series.clear();
    outcome.capacity_bps = f64::INFINITY;
    let table = &mut outcome.results[1].series[0];
    table.columns[0].1.fill(f64::NAN);
    table.columns[2].1[3] = f64::NEG_INFINITY;
    let page_text = page(&outcome);
    assert!(page_text.contains("No time series."));
    let data = data(&page_text);
    assert!(data["bars"][0]["mean"][0].is_null());
    // The window without values has only its threshold left, and the RTT a gap.
    let panels = &data["protocols"][1]["panels"];
    assert!(panels[2]["lines"][0]["y"][3].is_null());

    outcome.results.clear();
    assert!(page(&outcome).contains("No protocol finished a run."));
}

#[test]
fn long_series_are_thinned_and_many_flows_counted() {
    let page = page(&sample::outcome(&["reno"], 12, 300.0, 0.1));
    let data = data(&page);
    assert_eq!(data["protocols"][0]["left_out"], 6);
    let longest = data["protocols"][0]["panels"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|p| p["lines"].as_array().into_iter().flatten())
        .filter_map(|l| l["y"].as_array().map(Vec::len))
        .max();
    assert!(longest <= Some(1500) && longest > Some(500), "{longest:?}");
    assert!(page.contains("Each of its 12 flows"));
}

/// The controller's variables in a recording have their unit on the axis, and rates are scaled like the rest.
#[test]
fn series_of_a_controller_has_its_unit() {
    let mut outcome = sample::outcome(&["rrtp"], 1, 5.0, 0.1);
    outcome.command = "speed";
    let table = &mut outcome.results[0].series[0];
    let rows = table.time_s.len();
    table.columns.push(("bandwidth_bps", vec![1.25e6; rows]));
    table.columns.push(("loss_burst", vec![7.0; rows]));
    let data = data(&page(&outcome));
    let panels = data["protocols"][0]["panels"].as_array().expect("panels");
    let panel = |title: &str| panels.iter().find(|p| p["title"] == title).expect("its panel");
    let rate = panel("bandwidth");
    let window = panel("loss_burst");
    assert_eq!((&rate["unit"], &rate["lines"][0]["y"][0]), (&"Mbit/s".into(), &1.25.into()));
    assert_eq!((&window["unit"], &window["lines"][0]["y"][0]), (&"packets".into(), &7.into()));
}

/// A browser that prints without display does not wait for drawing after the page's load.
#[test]
fn page_printed_at_once_has_every_chart() {
    let folder = std::env::temp_dir().join(format!("narrows-print-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let probe = "<script>addEventListener('load', () => { dispatchEvent(new Event('beforeprint'));\
                 const all = [...document.querySelectorAll('.timeline, [data-bar]')];\
                 const drawn = all.filter((e) => e.querySelector('.main-svg'));\
                 document.title = `drawn ${drawn.length} of ${all.length}`; });</script></body>";
    let page = html(&sample::outcome(&sample::NAMES, 1, 60.0, 0.1)).replace("</body>", probe);
    std::fs::write(folder.join("page.html"), page).unwrap();
    let mut browser = std::process::Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    let out = browser.arg(format!("file://{}", folder.join("page.html").display())).output();
    let _ = std::fs::remove_dir_all(&folder);
    let Ok(out) = out else {
        eprintln!("skipped: chromium is not installed");
        return;
    };
    let shown = String::from_utf8_lossy(&out.stdout);
    let title = shown.split("<title>").nth(1).and_then(|t| t.split('<').next()).unwrap_or_default();
    let words: Vec<&str> = title.split(' ').collect();
    assert!(matches!(words[..], ["drawn", n, "of", all] if n == all && n != "0"), "{title}");
}
