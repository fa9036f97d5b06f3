//! Runs the console blocks of the README and of every page in `docs/`.
//!
//! In a block ```` ```console ```` a line `$ …` is a command and what follows is what it must
//! print, standard error after standard output. A line `...` stands for any lines, `...` at the end
//! of a line for its rest. Numbers may differ in the fifth digit, and below 1e-8 in all. Blocks
//! ```` ```python ```` run after them, where there is a NumPy; those of pages that use the Python
//! package are run by the package's own tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::without_progress;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A command of a page and the lines that it must print.
struct Step {
    place: String,
    command: String,
    expected: Vec<String>,
}

#[test]
#[cfg(unix)]
fn every_console_block_prints_what_the_page_says() {
    let mut n_steps = 0;
    for page in pages() {
        let folder = work_folder(&page);
        for step in steps(&page) {
            n_steps += 1;
            let printed = run(&folder, &step.command);
            if let Err(why) = matches(&step.expected, &printed) {
                panic!("{}: `{}` {why}\nit printed:\n{}", step.place, step.command, printed.join("\n"));
            }
        }
        run_python(&folder, &page);
        std::fs::remove_dir_all(folder).expect("the folder was made here");
    }
    assert!(n_steps > 15, "only {n_steps} commands were found in the pages");
}

/// Python blocks run in the folder that the commands of their page leave behind; their assertions
/// are in them.
fn run_python(folder: &Path, page: &Path) {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let blocks = python_blocks(page);
    if blocks.iter().any(|block| block.contains("import nextstat")) {
        return;
    }
    for block in blocks {
        let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output();
        if !has_numpy.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: a Python block of {}, as `{python}` has no NumPy", page.display());
            continue;
        }
        let output = Command::new(&python).args(["-c", &block]).current_dir(folder).output().expect("a Python");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "a Python block of {} fails:\n{said}", page.display());
    }
}

fn python_blocks(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("pages are text");
    let blocks = text.split("```python\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// A folder with a copy of the examples, so that commands may write beside them.
fn work_folder(page: &Path) -> PathBuf {
    let name = page.strip_prefix(ROOT).unwrap_or(page).with_extension("").to_string_lossy().replace(['/', '\\'], "-");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}-{}", std::process::id()));
    copy_inputs(&folder, "examples");
    copy_inputs(&folder, "examples/histfactory");
    folder
}

/// Copies what commands read from a folder of the repository.
fn copy_inputs(folder: &Path, inner: &str) {
    std::fs::create_dir_all(folder.join(inner)).expect("a writable target folder");
    for entry in std::fs::read_dir(Path::new(ROOT).join(inner)).expect("the repository has examples") {
        let path = entry.expect("a readable folder").path();
        let is_input = |extension| ["json", "yml", "xml", "root"].iter().any(|input| extension == *input);
        if path.extension().is_some_and(is_input) {
            std::fs::copy(&path, folder.join(inner).join(path.file_name().unwrap_or_default()))
                .expect("a writable target folder");
        }
    }
}

fn steps(page: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(page).expect("pages are text");
    let mut steps: Vec<Step> = Vec::new();
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_inside) {
            let place = format!("{}:{}", page.display(), number + 1);
            steps.push(Step { place, command: command.to_owned(), expected: Vec::new() });
        } else if is_inside && let Some(step) = steps.last_mut() {
            step.expected.push(line.to_owned());
        }
    }
    steps
}

fn run(folder: &Path, command: &str) -> Vec<String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_nextstat")).parent().expect("a file in a folder").to_owned();
    let path = std::env::join_paths(
        std::iter::once(binary).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path.expect("folders without colons"))
        .output()
        .expect("a shell");
    let printed = [output.stdout, output.stderr].concat();
    without_progress(&String::from_utf8_lossy(&printed)).lines().map(str::to_owned).collect()
}

fn matches(expected: &[String], printed: &[String]) -> Result<(), String> {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => Ok(()),
        (Some((wanted, rest)), _) if wanted == "..." => (0..=printed.len())
            .find(|&skipped| matches(rest, &printed[skipped..]).is_ok())
            .map(|_| ())
            .ok_or_else(|| format!("does not go on with `{}`", rest.first().map_or("", String::as_str))),
        (Some((wanted, rest)), Some((line, lines))) if line_matches(wanted, line) => matches(rest, lines),
        (Some((wanted, _)), line) => {
            Err(format!("should print `{wanted}`, not `{}`", line.map_or("", |(line, _)| line)))
        }
        (None, Some((line, _))) => Err(format!("should not print `{line}`")),
    }
}

fn line_matches(wanted: &str, line: &str) -> bool {
    if let Some(start) = wanted.strip_suffix("...") {
        return line.starts_with(start);
    }
    let (wanted, line): (Vec<&str>, Vec<&str>) =
        (wanted.split_whitespace().collect(), line.split_whitespace().collect());
    wanted.len() == line.len() && wanted.iter().zip(&line).all(|(a, b)| a == b || numbers_match(a, b))
}

fn numbers_match(a: &str, b: &str) -> bool {
    let (Ok(a), Ok(b)) = (a.parse::<f64>(), b.parse::<f64>()) else { return false };
    (a - b).abs() <= 1e-4 * a.abs().max(1e-4)
}
