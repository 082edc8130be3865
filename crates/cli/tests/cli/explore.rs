//! The page of `argwhy explore`, in a browser: it decides as `predict` does.

use crate::common::{Folder, noise, one_message, says};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

/// A browser that runs without a screen, where there is one.
fn browser() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let look = || {
        const NAMES: [&str; 4] =
            ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = named.or_else(|| {
            let places = std::env::split_paths(&paths).flat_map(|p| NAMES.map(|name| p.join(name)));
            places.into_iter().find(|place| place.is_file())
        });
        if found.is_none() {
            let told = "no Chromium on the PATH (or named by CHROMIUM): pages of `argwhy explore` \
                        were made, but not opened";
            let _ = writeln!(std::io::stderr(), "{told}");
        }
        found
    };
    FOUND.get_or_init(look).as_ref()
}

/// Opens `page` with a script that runs once the page is ready, and gives what it returns; none
/// where there is no browser.
fn open(folder: &Folder, page: &str, hash: &str, script: &str) -> Option<Value> {
    let browser = browser()?;
    // The page itself may talk to nobody; its driver tells this test.
    let driver = DRIVER.replace("SCRIPT", script);
    let driven = folder.text(page).replace("</body>", &format!("<script>{driver}</script></body>"));
    let driven = driven.replace("default-src 'none'", "default-src 'none'; connect-src 'self'");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/{hash}", listener.local_addr().unwrap());
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", folder.path("browser").display()))
        .arg(address)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || serve(&listener, &driven, &tell));
    let found = told.recv_timeout(Duration::from_mins(1));
    child.kill().unwrap();
    child.wait().unwrap();
    Some(serde_json::from_slice(&found.expect("the page says something within a minute")).unwrap())
}

const DRIVER: &str = "(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    while (!document.body.dataset.ready && $('trouble').hidden) await frame();
    await frame();
    let found;
    try { found = await (async () => { SCRIPT })(); } catch (error) { found = String(error.stack); }
    fetch('/', { method: 'POST', body: JSON.stringify(found ?? null) });
  })();";

/// Answers with the page until something is posted, and tells that.
fn serve(listener: &TcpListener, page: &str, tell: &mpsc::Sender<Vec<u8>>) {
    for stream in listener.incoming() {
        let mut reader = BufReader::new(stream.unwrap());
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() <= 2 {
                break;
            }
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let posted = first.starts_with("POST");
        let answer = if first.starts_with("GET / ") { page } else { "" };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
        let length = answer.len();
        let _ = write!(reader.get_mut(), "{head}\r\nContent-Length: {length}\r\n\r\n{answer}");
        if posted {
            let _ = tell.send(body);
            return;
        }
    }
}

/// Goes through all rows as a person would who types their numbers, and says what is decided.
const EVERY_ROW: &str = "const all = [];
    for (let i = 0; i < page.about.places.length; i++) {
      startFrom(i); update(); all.push(Array.from(page.answer.decision));
    }
    return all;";

/// 1000 rows of two products that two machines make; limits by row.
fn plans() -> Folder {
    let folder = Folder::new();
    let mut text = "sun,wind,a_t,b_t,W_0,W_1\n".to_owned();
    for i in 0..1000 {
        let (sun, wind) = (2.0 * noise(i, 0), 2.0 * noise(i, 1));
        let (saw, press) = (3.0 + noise(i, 5), 3.0 + noise(i, 6));
        let wish = [1.0 + (sun + 0.3 * wind).sin(), 1.0 + (wind - 0.2 * sun).sin()];
        let fits = |u: [f64; 2]| 2.0 * u[0] + u[1] <= saw && u[0] + 3.0 * u[1] <= press;
        let shrunk = (0..=100).map(|k| wish.map(|w| w * (1.0 - k as f64 / 100.0)));
        let [a, b] = shrunk.into_iter().find(|u| fits(*u)).unwrap();
        writeln!(text, "{sun:?},{wind:?},{a:?},{b:?},{saw:?},{press:?}").unwrap();
    }
    folder.write("plans.csv", text);
    folder.write("hours.csv", "limit,a_t,b_t\nsaw,2,1\npress,1,3\n");
    folder
}

const PLANNER: [&str; 9] = [
    "fit",
    "plans.csv",
    "--signals=sun,wind",
    "--decisions=a_t,b_t",
    "--matrix=hours.csv",
    "--lower=0,0",
    "--rows=0:300",
    "-k=1e-3",
    "-o=m.argwhy",
];

/// Decisions of `predict`, and their largest difference from those of the page.
fn apart(folder: &Folder, csv: &str, found: &Value) -> f64 {
    let rows: Vec<Vec<f64>> = folder
        .text(csv)
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|v| v.parse().unwrap()).collect())
        .collect();
    let found = found.as_array().unwrap_or_else(|| panic!("{found}"));
    assert_eq!((rows.len(), found.len()), (1000, 1000));
    let pairs = rows.iter().zip(found).flat_map(|(row, other)| {
        let other = other.as_array().unwrap();
        assert_eq!(row.len(), other.len());
        row.iter().zip(other).map(|(a, b)| (a - b.as_f64().unwrap()).abs())
    });
    pairs.fold(0.0, f64::max)
}

#[test]
fn a_page_decides_as_predict_does_in_a_thousand_boxes() {
    let folder = Folder::new();
    let mut text = "price,load,day,power,p_max\n".to_owned();
    for i in 0..1000 {
        let (price, load) = (50.0 + 30.0 * noise(i, 0), noise(i, 1));
        let power = (20.0 - 0.5 * (price - 50.0) + 6.0 * load).clamp(0.0, 28.0 + 4.0 * noise(i, 3));
        let p_max = 28.0 + 4.0 * noise(i, 3);
        writeln!(text, "{price:?},{load:?},{:?},{power:?},{p_max:?}", noise(i, 2)).unwrap();
    }
    folder.write("days.csv", text);
    let fit = ["fit", "days.csv", "--signals=price,load,day", "--decisions=power", "--lower=0"];
    let rest = ["--upper=p_max", "--rows=0:400", "-k=1e-5", "-o=m.argwhy", "-q"];
    folder.run(fit.into_iter().chain(rest)).exits(0);
    folder.run(["explore", "m.argwhy", "days.csv", "-o", "explore.html", "-q"]).exits(0);
    folder.run(["predict", "m.argwhy", "days.csv", "-o", "out.csv", "-q"]).exits(0);
    let Some(found) = open(&folder, "explore.html", "", EVERY_ROW) else { return };
    let apart = apart(&folder, "out.csv", &found);
    assert!(apart <= 1e-9, "{apart}");
}

#[test]
fn a_page_decides_as_predict_does_in_a_thousand_polytopes_with_and_without_a_learned_theta() {
    let folder = plans();
    for more in [&[][..], &["--theta=learn"]] {
        folder.run(PLANNER.iter().chain(more).chain(&["-q", "--max-iterations=40"]));
        let given = ["m.argwhy", "plans.csv", "--matrix=hours.csv", "-q", "-o"];
        folder.run(["explore"].iter().chain(&given).chain(&["explore.html"])).exits(0);
        folder.run(["predict"].iter().chain(&given).chain(&["out.csv"])).exits(0);
        let Some(found) = open(&folder, "explore.html", "", EVERY_ROW) else { return };
        let apart = apart(&folder, "out.csv", &found);
        assert!(apart <= 1e-9, "{more:?} {apart}");
    }
}

#[test]
fn sliders_limits_and_links_move_the_decision() {
    let folder = plans();
    folder.run(PLANNER.iter().chain(&["-q"])).exits(0);
    let given = ["explore", "m.argwhy", "plans.csv", "--matrix=hours.csv", "-q"];
    folder.run(given).exits(0);
    let script = "
        const slide = async (j, value) => {
          const slider = $(`slider-${j}`);
          slider.value = value; slider.dispatchEvent(new Event('input')); await frame();
        };
        const pushed = async () => { while (!page.pushes) await frame(); };
        const told = () => ({
          signal: [...page.signal], u: Array.from(page.answer.decision),
          held: $('held').textContent, light: $('familiarity').className,
          trouble: !$('trouble').hidden,
        });
        $('row').value = 17; $('row').dispatchEvent(new Event('change')); await frame();
        const row = told();
        await slide(0, 1.5); await slide(1, 1.25);
        await pushed();
        const slid = told();
        slid.pushes = Array.from(page.pushes);
        slid.bars = $('pushes').children.length;
        slid.desired = Array.from(page.answer.desired);
        slid.usual = Array.from(page.engine.answer(page.typical, 2).desired);
        const saw = $('limit-' + 2 ** 30);
        saw.value = 1.5; saw.dispatchEvent(new Event('change')); await frame();
        const tight = told();
        tight.hash = hash();
        saw.value = -1; saw.dispatchEvent(new Event('change')); await frame();
        const empty = { note: $('limits-note').textContent, ...told() };
        $('signal-0').value = 40; $('signal-0').dispatchEvent(new Event('change')); await frame();
        const past = $('past').tBodies[0].rows.length;
        return { row, slid, tight, empty, strange: told(), past };";
    let Some(found) = open(&folder, "explore.html", "", script) else { return };
    let ask = |signal: &Value, bounds: &[Value]| -> Value {
        let line = serde_json::json!({"signal": signal, "W": bounds}).to_string();
        let args = ["predict", "m.argwhy", "--jsonl", "--matrix=hours.csv"];
        folder.run_with(args, line).exits(0).json()["decision"].clone()
    };
    let text = folder.text("plans.csv");
    let row: Vec<f64> =
        text.lines().nth(18).unwrap().split(',').map(|v| v.parse().unwrap()).collect();
    assert_eq!(found["row"]["signal"], serde_json::json!(row[..2]), "{found}");
    assert_eq!(found["slid"]["signal"], serde_json::json!([1.5, 1.25]));
    let bounds = [row[4].into(), row[5].into()];
    let near = |a: &Value, b: &Value| {
        let apart = (0..2).map(|j| (a[j].as_f64().unwrap() - b[j].as_f64().unwrap()).abs());
        assert!(apart.fold(0.0, f64::max) <= 1e-9, "{a} {b}");
    };
    near(&found["slid"]["u"], &ask(&found["slid"]["signal"], &bounds));
    near(&found["tight"]["u"], &ask(&found["slid"]["signal"], &[1.5.into(), row[5].into()]));
    says(found["tight"]["held"].as_str().unwrap(), &["held by saw at a price of"]);
    says(found["empty"]["note"].as_str().unwrap(), &["Nothing is allowed", "saw"]);
    near(&found["empty"]["u"], &found["tight"]["u"]);
    assert!(found["strange"]["light"].as_str().unwrap().contains("bad"), "{found}");
    assert_eq!(found["past"].as_u64(), Some(6));
    assert_eq!(found["strange"]["trouble"].as_bool(), Some(false));
    // What signals push adds up to the difference from what is usual.
    let slid = &found["slid"];
    for j in 0..2 {
        let number = |v: &Value| v.as_f64().unwrap();
        let sum = number(&slid["pushes"][j]) + number(&slid["pushes"][2 + j]);
        let whole = number(&slid["desired"][j]) - number(&slid["usual"][j]);
        assert!((sum - whole).abs() <= 1e-9, "{sum} {whole}");
    }
    // Whoever opens the link finds the same.
    let again = "return { signal: page.signal, u: Array.from(page.answer.decision) };";
    let hash = found["tight"]["hash"].as_str().unwrap();
    let linked = open(&folder, "explore.html", hash, again).unwrap();
    near(&linked["u"], &found["tight"]["u"]);
    assert_eq!(linked["signal"], slid["signal"]);
    // A link of another model starts anew.
    let other = "return { signal: page.signal, told: $('copied').textContent };";
    let other = open(&folder, "explore.html", "#s=1,2,3", other).unwrap();
    assert_eq!(other["signal"].as_array().unwrap().len(), 2);
    says(other["told"].as_str().unwrap(), &["another model"]);
}

#[test]
fn pages_load_nothing_and_keep_what_they_are_given_to_themselves() {
    let folder = Folder::with_model();
    let ran = folder.run(["explore", "model.argwhy"]).exits(0);
    says(&ran.stderr, &["page written to explore.html"]);
    let page = folder.text("explore.html");
    says(&page, &["default-src 'none'", "samples that the model keeps", "<title>Explore model"]);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let found = page.replace("http://www.w3.org/2000/svg", "").contains(outside);
        assert!(!found, "{outside}");
    }
    folder.run(["explore", "model.argwhy", "data.csv", "-o", "rows.html", "-q"]).exits(0);
    says(&folder.text("rows.html"), &["Among 60 rows of the data, with what was decided then"]);
    // Rows without decisions are rows all the same.
    let narrow: String = folder
        .text("data.csv")
        .lines()
        .map(|l| l.split(',').take(3).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    folder.write("narrow.csv", narrow);
    folder.run(["explore", "model.argwhy", "narrow.csv", "-o", "narrow.html", "-q"]).exits(0);
    assert!(folder.text("narrow.html").contains("Among 60 rows of the data."));
    one_message(&folder.run(["explore", "data.csv"]).exits(2).stderr);
    let own = folder.run(["explore", "model.argwhy", "-o", "model.argwhy"]).exits(2).stderr;
    says(&own, &["model.argwhy"]);
}

#[test]
fn plain_models_and_unknown_limits_have_their_pages() {
    let folder = plans();
    let plain = ["fit", "plans.csv", "--signals=sun,wind", "--decisions=a_t,b_t", "--primal"];
    let rest = ["--kernel=linear", "--bounds=0,2", "--features=raw", "-o=plain.argwhy", "-q"];
    folder.run(plain.into_iter().chain(rest)).exits(0);
    folder.run(["explore", "plain.argwhy", "-o", "plain.html", "-q"]).exits(0);
    folder.run(PLANNER.iter().chain(&["-q"])).exits(0);
    folder.run(["explore", "m.argwhy", "-o", "alone.html", "-q"]).exits(0);
    let script = "return { u: page.answer.decision && Array.from(page.answer.decision),
        held: $('held').textContent, trouble: !$('trouble').hidden, past: $('past-box').hidden };";
    let Some(plain) = open(&folder, "plain.html", "", script) else { return };
    assert_eq!((plain["trouble"].as_bool(), plain["past"].as_bool()), (Some(false), Some(true)));
    assert_eq!(plain["u"].as_array().unwrap().len(), 2);
    let alone = open(&folder, "alone.html", "", script).unwrap();
    assert!(alone["u"].is_null() && alone["trouble"] == false, "{alone}");
    says(alone["held"].as_str().unwrap(), &["what is desired"]);
}
