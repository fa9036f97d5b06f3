//! `job`: its scripts make the bytes of one run, whatever files are called and whatever is killed.
//!
//! The scripts of `local` run as they are. Those of Slurm and HTCondor are read here by the rules
//! of these schedulers; the tests of the Python package run them by Slurm itself where it is
//! installed.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Run, Scratch, folder, nextstat};

const NEXTSTAT: &str = env!("CARGO_BIN_EXE_nextstat");

/// A folder whose name has a meaning for shells, with a workspace whose name has one, too.
struct Place {
    _scratch: Scratch,
    folder: PathBuf,
}

const WORKSPACE: &str = "it's \"my\" $HOME `x`.json";

impl Place {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let inner = PathBuf::from(scratch.path("a b;$(exit) 'c'"));
        fs::create_dir_all(&inner).expect("a scratch folder");
        fs::copy(folder("examples").join("simple.json"), inner.join(WORKSPACE)).expect("an example");
        Self { _scratch: scratch, folder: inner }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        nextstat(&self.folder, arguments)
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
        run.stdout
    }

    /// Runs the command that `job` printed.
    fn start(&self, line: &str) -> Output {
        Command::new("sh").args(["-c", line]).current_dir(&self.folder).output().expect("a shell")
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes a program that the jobs run instead of the command.
    fn program(&self, text: &str) -> String {
        let path = self.folder.join("program 1");
        fs::write(&path, format!("#!/bin/sh\n{text}")).expect("a scratch folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a scratch file");
        path.to_str().expect("text").to_owned()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

const TOYS: [&str; 6] = ["toys", WORKSPACE, "--n-toys", "90", "--seed", "7"];

#[test]
fn a_local_job_makes_the_bytes_of_one_run() {
    let place = Place::new("job-local");
    let base = ["job", "--scheduler", "local", "--shards", "4", "--directory", "the 'job' $1", "--at-once", "2"];
    let job = [&base[..], &TOYS, &["--output-file", "my toys.npy"]].concat();
    let line = place.ok(&job);
    let done = place.start(&line);
    assert!(done.status.success(), "{}", said(&done));
    place.ok(&[&TOYS[..], &["-o", "one.npy"]].concat());
    assert_eq!(place.read("my toys.npy"), place.read("one.npy"));
    assert_eq!(place.read("my toys.npy.json"), place.read("one.npy.json"));
    // The same job again is the job that is there, and another one is refused.
    assert_eq!(place.ok(&job), line);
    assert!(place.start(&line).status.success());
    let other = place.run(&[&base[..], &TOYS, &["--poi-uncertainty", "-o", "my toys.npy"]].concat());
    assert!(other.code == Some(2) && other.stderr.contains("is not this job"), "{}", other.stderr);
}

#[test]
fn jobs_of_tests_and_of_data_sets_make_the_documents_of_one_run() {
    let place = Place::new("job-verbs");
    let test = ["hypotest-toys", WORKSPACE, "--n-toys", "60", "--n-toys-b", "50"];
    let job = ["job", "--scheduler", "local", "--shards", "3", "--directory", "test"];
    let line = place.ok(&[&job[..], &test, &["--toys-file=-t.npy", "-o", "test.json"]].concat());
    let done = place.start(&line);
    assert!(done.status.success(), "{}", said(&done));
    let document = |text: &str| {
        let mut document: serde_json::Value = serde_json::from_str(text).expect("JSON");
        document.as_object_mut().expect("an object").remove("provenance");
        document
    };
    let one = place.ok(&[&test[..], &["--toys-file", "one.npy"]].concat());
    assert_eq!(document(&String::from_utf8_lossy(&place.read("test.json"))), document(&one));
    assert_eq!(place.read("-t.npy"), place.read("one.npy"));

    fs::write(place.folder.join("rows.txt"), "57 63\n51 48\n60 60\n").expect("a scratch folder");
    let fits = ["fits", WORKSPACE, "--data", "rows.txt"];
    let job = ["job", "--scheduler", "local", "--shards", "2", "--directory", "fits", "--"];
    let done = place.start(&place.ok(&[&job[..], &fits, &["-ofits.npy"]].concat()));
    assert!(done.status.success(), "{}", said(&done));
    place.ok(&[&fits[..], &["-o", "one.npy"]].concat());
    assert_eq!(place.read("fits.npy"), place.read("one.npy"));
}

#[test]
fn a_job_of_a_patch_set_makes_the_document_of_one_run() {
    let place = Place::new("job-grid");
    for name in ["background.json", "signals.json"] {
        fs::copy(folder("examples").join(name), place.folder.join(name)).expect("an example");
    }
    let limits = ["limit", "background.json", "--patchset", "signals.json", "--every-patch"];
    let job = ["job", "--scheduler", "local", "--shards", "3", "--directory", "job"];
    let line = place.ok(&[&job[..], &limits, &["-o", "limits.json"]].concat());
    let done = place.start(&line);
    assert!(done.status.success(), "{}", said(&done));
    let patches = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON")["patches"].clone();
    assert_eq!(patches(&place.read("limits.json")), patches(place.ok(&limits).as_bytes()));
    // A shard that is there is not computed again, and one that is not is.
    fs::remove_file(place.folder.join("job/shard-2.json")).expect("a shard");
    fs::remove_file(place.folder.join("limits.json")).expect("a result");
    let first = fs::metadata(place.folder.join("job/shard-1.json")).and_then(|data| data.modified()).expect("a shard");
    assert!(place.start(&line).status.success());
    let again = fs::metadata(place.folder.join("job/shard-1.json")).and_then(|data| data.modified()).expect("a shard");
    assert!(first == again && place.folder.join("limits.json").exists());
}

/// Kills the first attempt at each shard when it has written some toys.
const KILLED_ONCE: &str = r#"
[ "$2" = merge ] && exec "$REAL" "$@"
mark="killed-${4%/*}"
[ -e "$mark" ] && exec "$REAL" "$@"
"$REAL" "$@" &
until [ -s "$6.part" ]; do sleep 0.01; done
: > "$mark"
kill -9 $!
kill -9 $$
"#;

#[test]
fn a_shard_that_is_killed_continues() {
    let place = Place::new("job-killed");
    let program = place.program(&KILLED_ONCE.replace("$REAL", NEXTSTAT));
    let toys = ["toys", WORKSPACE, "--n-toys", "20000", "--seed", "3"];
    let job = ["job", "--scheduler", "local", "--shards", "2", "--directory", "job", "--program", &program];
    let line = place.ok(&[&job[..], &toys, &["--output-file", "toys.npy"]].concat());
    let done = place.start(&line);
    assert!(done.status.success(), "{}", said(&done));
    assert!(["killed-1", "killed-2"].iter().all(|mark| place.folder.join(mark).exists()));
    place.ok(&[&toys[..], &["-o", "one.npy"]].concat());
    assert_eq!(place.read("toys.npy"), place.read("one.npy"));
}

#[test]
fn a_shard_that_fails_is_named_and_the_others_are_kept() {
    let place = Place::new("job-failed");
    let text =
        "case \" $* \" in *' 2/3 '*) [ -e repaired ] || { echo no disk >&2; exit 2; };; esac\nexec REAL \"$@\"\n";
    let program = place.program(&text.replace("REAL", NEXTSTAT));
    let job = ["job", "--scheduler", "local", "--shards", "3", "--directory", "job", "--program", &program];
    let line = place.ok(&[&job[..], &TOYS, &["--output-file", "toys.npy"]].concat());
    let failed = place.start(&line);
    let message = "error: shard 2 ended with exit code 2\nno disk\nhint: run this script again to continue\n";
    assert_eq!((failed.status.code(), said(&failed).as_str()), (Some(2), message));
    let is_there = |name: &str| place.folder.join(name).exists();
    assert!(is_there("job/shard-1.npy") && is_there("job/shard-3.npy") && !is_there("toys.npy"));
    fs::write(place.folder.join("repaired"), "").expect("a scratch folder");
    assert!(place.start(&line).status.success());
    place.ok(&[&TOYS[..], &["-o", "one.npy"]].concat());
    assert_eq!(place.read("toys.npy"), place.read("one.npy"));
}

#[test]
fn a_job_that_is_stopped_leaves_no_process() {
    let place = Place::new("job-stopped");
    let program = place.program("echo $$ > \"pid-${4%/*}\"\nexec sleep 600\n");
    let job = ["job", "--scheduler", "local", "--shards", "2", "--at-once", "2", "--directory", "job"];
    place.ok(&[&job[..], &["--program", &program], &TOYS, &["-o", "toys.npy"]].concat());
    let mut submit = Command::new("sh");
    submit.arg("job/submit.sh").current_dir(&place.folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = submit.spawn().expect("a shell");
    let begin = Instant::now();
    let pid_of = |shard: &str| fs::read_to_string(place.folder.join(format!("pid-{shard}"))).ok();
    let pids = loop {
        let pids: Vec<String> =
            ["1", "2"].iter().filter_map(|shard| pid_of(shard)).filter(|pid| pid.ends_with('\n')).collect();
        if pids.len() == 2 {
            break pids;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the shards do not start");
        std::thread::sleep(Duration::from_millis(10));
    };
    let kill = |signal: &str, pid: &str| Command::new("kill").args([signal, pid.trim()]).output().expect("kill").status;
    assert!(kill("-TERM", &child.id().to_string()).success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(!pids.iter().any(|pid| kill("-0", pid).success()), "a shard goes on");
}

/// `sbatch` as far as the scripts need it: it runs every task of an array, and what depends on it.
const SBATCH: &str = r#"
for script; do :; done
options=" $* $(sed -n 's/^#SBATCH //p' "$script" | tr '\n' ' ') "
log() { echo "$options" | sed -n 's/.* --output=\([^ ]*\) .*/\1/p' | sed "s/%a/$1/"; }
last=$(echo "$options" | sed -n 's/.* --array=1-\([0-9]*\)%2 .*/\1/p')
case "$options" in
*' --time=1:00:00 '*) ;;
*) exit 1 ;;
esac
if [ -n "$last" ]; then
    for task in $(seq "$last"); do
        SLURM_ARRAY_TASK_ID=$task sh "$script" >>"$(log "$task")" 2>&1 || exit 1
    done
    echo '17;cluster'
else
    case "$options" in
    *' --dependency=afterok:17 --kill-on-invalid-dep=yes '*) sh "$script" >>"$(log)" 2>&1 && echo 18 ;;
    *) exit 1 ;;
    esac
fi
"#;

#[test]
fn a_job_of_slurm_makes_the_bytes_of_one_run() {
    let place = Place::new("job-slurm");
    let bin = place.folder.join("bin");
    fs::create_dir(&bin).expect("a scratch folder");
    fs::rename(place.program(SBATCH), bin.join("sbatch")).expect("a scratch folder");
    let job = ["job", "--scheduler", "slurm", "--shards", "3", "--at-once", "2", "--directory", "jo\"b", "--directive"];
    let line = place.ok(&[&job[..], &["--time=1:00:00", "--"], &TOYS, &["-o", "toys.npy"]].concat());
    let path = std::env::join_paths([bin.as_path(), Path::new("/usr/bin"), Path::new("/bin")]);
    let mut submit = Command::new("sh");
    let submit = submit.args(["-c", &line]).current_dir(&place.folder).env("PATH", path.expect("no colons"));
    let done = submit.output().expect("a shell");
    assert_eq!(said(&done), "shards: job 17, merge: job 18\n");
    place.ok(&[&TOYS[..], &["-o", "one.npy"]].concat());
    assert_eq!(place.read("toys.npy"), place.read("one.npy"));
}

/// The settings of a submit file, which must end with `queue`.
fn submit_file(text: &str) -> HashMap<String, String> {
    let lines = text.strip_suffix("queue\n").expect("one job").lines();
    lines
        .map(|line| line.split_once(" = ").expect("a setting"))
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

#[test]
fn a_job_of_htcondor_makes_the_bytes_of_one_run() {
    let place = Place::new("job-htcondor");
    let job =
        ["job", "--scheduler", "htcondor", "--shards", "3", "--at-once", "2", "--directory", "job", "--directive"];
    place.ok(&[&job[..], &["request_memory = 2 GB"], &TOYS, &["--threads", "2", "-o", "toys.npy"]].concat());
    let text = |name: &str| String::from_utf8(place.read(&format!("job/{name}"))).expect("UTF-8");
    assert!(text("submit.sh").ends_with("exec condor_submit_dag -force -maxjobs 2 job.dag\n"));
    let graph = text("job.dag");
    let words = |line: &'static str| graph.lines().filter(move |found| found.starts_with(line));
    let run = |name: &str, shard: Option<&str>| {
        let settings = submit_file(&text(name));
        assert_eq!(settings["request_memory"], "2 GB");
        let executable = Path::new("./").join(&settings["executable"]);
        let argument = settings.get("arguments").map(|argument| argument.replace("$(shard)", shard.expect("a shard")));
        let done = Command::new(executable).args(argument).current_dir(place.folder.join("job")).output();
        let done = done.expect("an executable file");
        assert!(done.status.success(), "{}", said(&done));
    };
    let jobs: Vec<&str> = words("JOB shard-").collect();
    assert_eq!(jobs, ["JOB shard-1 shard.sub", "JOB shard-2 shard.sub", "JOB shard-3 shard.sub"]);
    for (line, shard) in words("VARS").zip(["1", "2", "3"]) {
        assert_eq!(line, format!("VARS shard-{shard} shard=\"{shard}\""));
        run("shard.sub", Some(shard));
    }
    assert_eq!(words("PARENT").count(), 3);
    assert_eq!(words("RETRY").next(), Some("RETRY shard-1 3 UNLESS-EXIT 2"));
    assert_eq!(submit_file(&text("shard.sub"))["request_cpus"], "2");
    run("merge.sub", None);
    place.ok(&[&TOYS[..], &["-o", "one.npy"]].concat());
    assert_eq!(place.read("toys.npy"), place.read("one.npy"));
}

#[test]
fn mistakes_with_jobs_are_explained() {
    let mut said = String::new();
    for words in [
        "fit simple.json",
        "interval simple.json -o interval.json",
        "hypotest simple.json -o test.json",
        "limit background.json --patchset signals.json --every-patch --format csv -o limits.csv",
        "toys simple.json",
        "toys simple.json -o -",
        "toys simple.json --shard 1/2 -o x.npy",
        "toys -o x.npy",
        "toys absent.json -o x.npy",
        "toys simple.json -o simple.json",
        "toys simple.json -qo x.npy",
        "toys merge simple.json -o x.npy",
        "tyos simple.json -o x.npy",
        "toys simple.json --n-toy 4 -o x.npy",
        "fits simple.json --data - -o x.npy",
        "hypotest-toys simple.json --stop-at-error 0.1 -o x.json",
        "hypotest-toys simple.json --format csv -o x.csv",
        "--directive --time=1 toys simple.json -o x.npy",
        "--shards 0 toys simple.json -o x.npy",
        "--scheduler pbs toys simple.json -o x.npy",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let own = |option: &str| words.contains(&option);
        let mut arguments = vec!["job", "--directory", "/nonexistent/job"];
        arguments.extend_from_slice(if own("--scheduler") { &[] } else { &["--scheduler", "local"] });
        arguments.extend_from_slice(if own("--shards") { &[] } else { &["--shards", "2"] });
        arguments.extend(&words);
        let run = nextstat(&folder("examples"), &arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{words:?}");
        said.push_str(&format!("$ nextstat job {}\n{}", words.join(" "), run.stderr));
    }
    insta::assert_snapshot!(said);
    // A folder with anything else in it stays as it is.
    let scratch = Scratch::new("job-occupied");
    fs::write(scratch.path("notes.txt"), "mine").expect("a scratch folder");
    let base = ["job", "--scheduler", "slurm", "--shards", "2", "--directory"];
    let job = |folder: &str| [&base[..], &[folder, "toys", "simple.json", "-o", "x.npy"]].concat().join("\n");
    for (place, message) in [(scratch.path(""), "is not empty"), (scratch.path("notes.txt"), "cannot write")] {
        let run = nextstat(&folder("examples"), &job(&place).split('\n').collect::<Vec<_>>());
        assert!(run.code == Some(2) && run.stderr.contains(message), "{}", run.stderr);
    }
    assert_eq!(scratch.names(), ["notes.txt"]);
}
