//! Progress of long work: one line on a terminal, with the rate and the time left. Also handles
//! Ctrl-C.

use super::Reporter;
use nextstat::number::significant;
use ns_inference::monitor::Monitor;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_millis(500);

/// Time between two updates of the line on a terminal.
const ON_TERMINAL: Duration = Duration::from_millis(100);

/// Time between two lines in a log.
const IN_LOG: Duration = Duration::from_secs(10);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Shows the progress of work, and asks it to stop after Ctrl-C.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The unit of work, such as `toys`.
    units: &'static str,
    reporter: Reporter,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the last line was written.
    last: Option<Instant>,
    /// Whether that line is still on a terminal.
    is_line_open: bool,
    /// What the first report said, and when: the rate is that of the work after it, because what is
    /// before it may be other work, or that of an earlier run.
    first: Option<Beginning>,
}

/// The first report of a run.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    done: usize,
    at: Instant,
}

impl Progress {
    /// Monitors work counted in `units`. From now on the first Ctrl-C asks it to stop, and the
    /// second one ends the process.
    pub(crate) fn new(reporter: Reporter, units: &'static str) -> Self {
        // The handler is set once and shared.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        Self { units, reporter, state: Mutex::default() }
    }

    /// Returns `true` after Ctrl-C.
    pub(crate) fn is_interrupted() -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }

    fn line(&self, done: usize, total: usize, rate: f64) -> String {
        let left = if rate > 0.0 { (total.saturating_sub(done)) as f64 / rate } else { f64::INFINITY };
        let rate = if rate < 100.0 { significant(rate, 2) } else { format!("{rate:.0}") };
        format!("{done} of {total} {}, {rate} per second, {} left", self.units, duration(left))
    }
}

impl Monitor for Progress {
    fn progress(&self, done: usize, total: usize) {
        let Some(is_terminal) = self.reporter.shows_progress() else { return };
        let Ok(mut state) = self.state.lock() else { return };
        let first = *state.first.get_or_insert_with(|| Beginning { done, at: Instant::now() });
        let time = first.at.elapsed();
        let pause = if is_terminal { ON_TERMINAL } else { IN_LOG };
        let is_due = state.last.map_or(time >= PATIENCE, |last| last.elapsed() >= pause);
        if !is_due || (!is_terminal && done == total) {
            return;
        }
        state.last = Some(Instant::now());
        state.is_line_open = is_terminal;
        let line = self.line(done, total, rate(first.done, done, time));
        let text = if is_terminal { format!("\r\x1b[K{} {line}", bar(done, total)) } else { format!("{line}\n") };
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    fn is_cancelled(&self) -> bool {
        Self::is_interrupted()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.state.lock().is_ok_and(|state| state.is_line_open) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

/// Returns the units per second from `first` to `done`.
fn rate(first: usize, done: usize, time: Duration) -> f64 {
    done.saturating_sub(first) as f64 / time.as_secs_f64()
}

/// Draws which part of `total` is done.
fn bar(done: usize, total: usize) -> String {
    const WIDTH: usize = 24;
    let n = done.min(total) * WIDTH / total.max(1);
    format!("[{}{}]", "#".repeat(n), " ".repeat(WIDTH - n))
}

/// Formats a time.
fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "an unknown time".to_owned();
    }
    let whole = seconds.ceil() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, duration, rate};
    use std::time::Duration;

    #[test]
    fn bars_are_as_long_as_what_is_done() {
        assert_eq!(bar(0, 10), format!("[{}]", " ".repeat(24)));
        assert_eq!(bar(5, 10), format!("[{}{}]", "#".repeat(12), " ".repeat(12)));
        assert_eq!(bar(0, 0).len(), 26);
    }

    #[test]
    fn the_rate_is_that_of_the_work_after_the_first_report() {
        // A run that is continued at 1000 has done nothing for the 1000 before.
        assert_eq!(rate(1016, 1116, Duration::from_secs(2)), 50.0);
        assert_eq!(rate(16, 16, Duration::from_secs(1)), 0.0);
    }

    #[test]
    fn times_are_rounded_up_to_two_units() {
        assert_eq!([0.2, 59.0, 61.0, 7260.0].map(duration), ["1 s", "59 s", "1 min 1 s", "2 h 1 min"]);
        assert_eq!(duration(f64::INFINITY), "an unknown time");
    }
}
