//! The console blocks of the README, the guide and the page of encoders, run as they are written;
//! `...` matches any lines, or the rest of one.

use std::path::Path;
use std::process::Command;

use crate::random_model::fresh_folder;
use crate::support::program;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
#[cfg(unix)]
fn every_console_block_prints_what_its_page_says() {
    let python = Command::new("python3").arg("--version").output();
    assert!(python.is_ok_and(|output| output.status.success()), "python3 is needed");
    assert_eq!(run_blocks("README.md"), 2);
    assert_eq!(run_blocks("docs/guide.md"), 6);
    assert_eq!(run_blocks("docs/encoders.md"), 5);
}

/// Runs the console blocks of `page` in a fresh folder, and returns the number of commands.
fn run_blocks(page: &str) -> usize {
    let folder = fresh_folder("page");
    std::fs::create_dir(folder.join("examples")).expect("a fresh folder");
    let example = "examples/toy_decoder.py";
    std::fs::copy(Path::new(ROOT).join(example), folder.join(example)).expect("the example");
    for (fixture, name) in [("part.onnx", "tagger.onnx"), ("part.npz", "jets.npz")] {
        let fixture = Path::new(ROOT).join("torchless/tests/encoders").join(fixture);
        std::fs::copy(fixture, folder.join(name)).expect("a fixture");
    }
    let page = std::fs::read_to_string(Path::new(ROOT).join("torchless").join(page)).expect("the page");
    let mut n_steps = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for step in block.split_inclusive('\n').fold(Vec::<Vec<&str>>::new(), |mut steps, line| {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push(vec![command.trim_end()]),
                None => steps.last_mut().expect("a command comes first").push(line.trim_end()),
            }
            steps
        }) {
            n_steps += 1;
            let printed = run(&folder, step[0]);
            assert!(matches(&step[1..], &printed), "`{}` should print {:#?}, not {printed:#?}", step[0], &step[1..]);
        }
    }
    n_steps
}

fn run(folder: &Path, command: &str) -> Vec<String> {
    let binary = program().parent().expect("a file in a folder").to_owned();
    let old = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(binary).chain(std::env::split_paths(&old)));
    let output =
        Command::new("sh").args(["-c", command]).current_dir(folder).env("PATH", path.expect("plain folders")).output();
    let output = output.expect("a shell");
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&printed).lines().map(|line| line.trim_end().to_owned()).collect()
}

fn matches(expected: &[&str], printed: &[String]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        (Some((wanted, rest)), Some((line, lines))) => {
            let is_same = match wanted.strip_suffix("...") {
                Some(start) => line.starts_with(start),
                None => same(wanted, line),
            };
            is_same && matches(rest, lines)
        }
        _ => false,
    }
}

/// Word by word, numbers to the last digit or two: instruction sets differ there.
fn same(wanted: &str, line: &str) -> bool {
    let (wanted, line): (Vec<&str>, Vec<&str>) =
        (wanted.split_whitespace().collect(), line.split_whitespace().collect());
    let near = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() < 2e-5,
        _ => a == b,
    };
    wanted.len() == line.len() && wanted.iter().zip(&line).all(|(a, b)| near(a, b))
}
