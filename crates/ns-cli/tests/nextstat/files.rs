//! Files that are read and written: what is refused, what is replaced, and what is left alone.

use std::fs;
use std::process::Output;

use crate::support::{Run, Scratch, folder, nextstat};

fn examples(arguments: &[&str]) -> Run {
    nextstat(&folder("examples"), arguments)
}

/// Copies `simple.json` into `scratch` as `name`.
fn copied(scratch: &Scratch, name: &str) -> String {
    let path = scratch.path(name);
    fs::copy(folder("examples").join("simple.json"), &path).expect("writable");
    path
}

/// What a shell makes of `line`, in which `nextstat` is the command.
#[cfg(unix)]
fn shell(line: &str) -> Output {
    let line = line.replace("nextstat ", &format!("'{}' ", env!("CARGO_BIN_EXE_nextstat")));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &line]).current_dir(folder("examples")).output().expect("a shell")
}

#[test]
fn results_do_not_replace_what_they_are_made_from() {
    let scratch = Scratch::new("inputs");
    let input = copied(&scratch, "in.json");
    let set = scratch.path("set.json");
    fs::copy(folder("examples").join("signals.json"), &set).expect("writable");
    let document = copied(&scratch, "toys.npy.json");
    let toys = scratch.path("toys.npy");
    for arguments in [
        &["fit", &input, "--output-file", &input][..],
        &["check", &input, "--output-file", &input],
        &["inspect", "--input", &input, "--output-file", &input],
        &["fit", "background.json", "--patch", &input, "--output-file", &input],
        &["evaluate", "simple.json", "--points", &input, "--output-file", &input],
        &["digest", &input, "--output-file", &input],
        &["sort", &input, "--output-file", &input],
        &["rename", &input, "--channel", "singlechannel", "SR", "--output-file", &input],
        &["prune", &input, "--sample", "signal", "--output-file", &input],
        &["decorrelate", &input, "-m", "uncorr_bkguncrt", "--output-file", &input],
        &["patchset", "list", &set, "--output-file", &set],
        &["limit", "background.json", "--patchset", &set, "--every-patch", "--output-file", &set],
        &["toys", &input, "--n-toys", "2", "--output-file", &input],
        &["toys", &document, "--n-toys", "2", "--output-file", &toys],
        &["hypotest-toys", &document, "--n-toys", "2", "--toys-file", &toys],
    ] {
        let run = examples(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.contains("is an input of this command, and the result would replace it"), "{}", run.stderr);
    }
    let fit = scratch.path("fit.json");
    assert_eq!(examples(&["fit", "simple.json", "--covariance", "-o", &fit]).code, Some(0));
    let stored = scratch.read("fit.json");
    for arguments in [
        &["yields", "simple.json", "--from", &fit, "-o", &fit][..],
        &["report", "simple.json", "--from", &fit, "-o", &fit],
        &["gof", "simple.json", "--from", &fit, "-o", &fit],
        &["ranking", "simple.json", "--from", &fit, "-o", &fit],
        &["limit", "simple.json", "--asimov-from", &fit, "-o", &fit],
    ] {
        let run = examples(arguments);
        assert!(run.code == Some(2) && run.stderr.contains("is an input of this command"), "{arguments:?}");
    }
    assert_eq!(scratch.read("fit.json"), stored);
    let unchanged = fs::read(folder("examples").join("simple.json")).expect("readable");
    assert_eq!([scratch.read("in.json"), scratch.read("toys.npy.json")], [unchanged.clone(), unchanged]);
}

#[test]
fn merged_toys_do_not_replace_a_shard() {
    let scratch = Scratch::new("shard-input");
    let path = scratch.path("a.npy");
    assert_eq!(examples(&["toys", "simple.json", "--n-toys", "3", "--output-file", &path]).code, Some(0));
    let again = examples(&["toys", "merge", &path, "--output-file", &path]);
    assert!(again.code == Some(2) && again.stderr.contains("would replace it"), "{}", again.stderr);
}

#[test]
fn counts_beyond_the_range_of_likelihoods_are_an_error_of_check() {
    let scratch = Scratch::new("overflow");
    let path = scratch.path("huge.json");
    let text = fs::read_to_string(folder("examples").join("simple.json")).expect("readable");
    let huge = text.replace("12.0, 11.0", "1e308, 1e308");
    assert_ne!(huge, text);
    fs::write(&path, huge).expect("writable");
    let run = examples(&["check", &path]);
    assert_eq!(run.code, Some(1));
    let finding = &run.document()["findings"][0];
    assert_eq!((finding["code"].as_str(), finding["severity"].as_str()), (Some("overflow"), Some("error")));
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn mode(path: &str) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn a_closed_standard_output_is_an_error() {
        for verb in ["fit simple.json", "toys simple.json --n-toys 2", "completions bash", "--version", "fit --help"] {
            let output = shell(&format!("nextstat {verb} >&-"));
            assert_eq!(output.status.code(), Some(2), "{verb}");
            assert_eq!(text(&output.stderr), "error: cannot write standard output: it is closed\n", "{verb}");
        }
        let scratch = Scratch::new("closed");
        let output = shell(&format!("nextstat fit simple.json --output-file {} >&-", scratch.path("fit.json")));
        assert_eq!(output.status.code(), Some(0), "a file needs no standard output: {}", text(&output.stderr));
    }

    #[test]
    fn a_full_standard_output_is_an_error() {
        if !Path::new("/dev/full").exists() {
            println!("skipped: this system has no /dev/full");
            return;
        }
        for verb in ["--version", "--help", "fit --help", "fit simple.json", "toys simple.json --n-toys 2"] {
            let output = shell(&format!("nextstat {verb} >/dev/full"));
            assert_eq!(output.status.code(), Some(2), "{verb}");
            assert!(text(&output.stderr).starts_with("error: cannot write standard output: "), "{verb}");
        }
    }

    #[test]
    fn files_keep_their_mode_and_read_only_ones_are_left() {
        let scratch = Scratch::new("modes");
        let path = scratch.path("fit.json");
        for arguments in [&["fit", "simple.json"][..], &["toys", "simple.json", "--n-toys", "2"]] {
            let run = || examples(&[arguments, &["--output-file", &path]].concat());
            fs::write(&path, "old").expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mine");
            assert_eq!((run().code, mode(&path)), (Some(0), 0o640));
            fs::write(&path, "old").expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("mine");
            let refused = run();
            assert!(refused.code == Some(2) && refused.stderr.contains("the file is read-only"), "{}", refused.stderr);
            assert_eq!((scratch.read("fit.json"), mode(&path)), (b"old".to_vec(), 0o400));
            fs::remove_file(&path).expect("mine");
        }
        assert_eq!(scratch.names(), Vec::<String>::new(), "nothing is left behind");
    }

    #[test]
    fn links_are_written_through_whether_their_targets_exist_or_not() {
        let scratch = Scratch::new("links");
        let (link, second) = (scratch.path("link.json"), scratch.path("second.json"));
        symlink("target.json", &link).expect("a link");
        symlink("link.json", &second).expect("a link");
        for path in [&second, &link] {
            let run = examples(&["fit", "simple.json", "--output-file", path]);
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
            assert!(fs::symlink_metadata(path).expect("there").is_symlink());
        }
        assert_eq!(scratch.names(), ["link.json", "second.json", "target.json"]);
        assert!(!scratch.read("target.json").is_empty());
        let around = scratch.path("around.json");
        symlink("around.json", &around).expect("a link");
        let run = examples(&["fit", "simple.json", "--output-file", &around]);
        assert!(run.code == Some(2) && run.stderr.starts_with("error: cannot write `"), "{}", run.stderr);
        assert!(fs::symlink_metadata(&around).expect("there").is_symlink());
    }

    #[test]
    fn files_of_other_processes_are_left_alone() {
        let scratch = Scratch::new("others");
        let path = scratch.path("fit.json");
        // A shell that becomes the command: its number is known before the command starts.
        let line = format!(
            "touch {0}/.fit.json.$$.tmp; exec nextstat fit simple.json --output-file {path}",
            scratch.path(".")
        );
        let output = shell(&line);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
        assert_eq!(scratch.names().len(), 2, "{:?}", scratch.names());
    }

    #[test]
    fn names_that_are_not_text_are_names_of_inputs_too() {
        let scratch = Scratch::new("names");
        let path = Path::new(&scratch.path(".")).join(OsStr::from_bytes(b"n\xff.json"));
        if fs::copy(folder("examples").join("simple.json"), &path).is_err() {
            println!("skipped: this file system has no such names");
            return;
        }
        for verb in ["fit", "inspect", "digest", "sort"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_nextstat"));
            let output = command.arg(verb).arg(&path).output().expect("the command starts");
            assert_eq!(output.status.code(), Some(0), "{verb}: {}", text(&output.stderr));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_nextstat"));
        let absent = Path::new("/nowhere").join(OsStr::from_bytes(b"n\xff.json"));
        let output = command.arg("fit").arg(absent).output().expect("the command starts");
        assert!(text(&output.stderr).starts_with("error: cannot read `/nowhere/n"), "{}", text(&output.stderr));
    }

    #[test]
    fn an_unknown_instruction_set_is_warned_of() {
        for (word, is_warned) in [("foo", true), ("scalar", true), ("baseline", false), ("", false)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_nextstat"));
            command.args(["fit", "simple.json"]).current_dir(folder("examples")).env("NEXTSTAT_ISA", word);
            let output = command.output().expect("the command starts");
            assert_eq!(output.status.code(), Some(0));
            let start = format!("warning: `NEXTSTAT_ISA={word}` names no instruction set and is ignored");
            assert_eq!(text(&output.stderr).starts_with(&start), is_warned, "{}", text(&output.stderr));
        }
    }
}
