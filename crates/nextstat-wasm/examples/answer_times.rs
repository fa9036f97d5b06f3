//! Times answers natively, for comparison with `web/answer_times.mjs`: `answer_times FILE VERB N`
//! prints the least and the median of N times in milliseconds.

use nextstat::NoMonitor;
use nextstat_wasm::{Files, Session};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, verb, n] = arguments.as_slice() else {
        return Err("usage: answer_times FILE VERB N".into());
    };
    let mut files = Files::default();
    files.add("workspace", std::fs::read(file)?)?;
    let session = Session::open(&files, r#"{"workspace": "workspace"}"#)?;
    let question = format!(r#"{{"verb": "{verb}"}}"#);
    let mut times = Vec::new();
    for _ in 0..n.parse()? {
        let begun = Instant::now();
        session.run(&question, &NoMonitor)?;
        times.push(1e3 * begun.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    println!("{:.2} {:.2}", times[0], times[times.len() / 2]);
    Ok(())
}
