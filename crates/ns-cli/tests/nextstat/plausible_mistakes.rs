//! What users of pyhf, cabinetry, TRExFitter and Combine type first: each runs, or gets an answer
//! that says what to type instead.

use crate::support::{Run, Scratch, folder, nextstat, with_stdin};

/// Arguments, exit code, and what standard error contains.
type Mistake = (&'static str, i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    // Files.
    ("fit missing.json", 2, &["cannot read `missing.json`"]),
    ("fit README.md", 2, &["in `README.md`: expected a value, found `#` at line 1", "hint: this is not JSON"]),
    ("fit config.yml", 2, &["in `config.yml`", "hint: this is not JSON; `nextstat build` makes a workspace"]),
    (
        "fit histograms.root",
        2,
        &["is a ROOT file, not JSON", "hint: of HistFactory XML, name the file of the combination"],
    ),
    (
        "fit combination.xml",
        2,
        &["`Combination` has no element `Input` at line 2, column 1", "hint: `<Input>channel.xml</Input>`"],
    ),
    ("fit hs3.json", 2, &["in `hs3.json`: the document has no likelihood", "hint: `likelihoods` says which data"]),
    ("fit -", 2, &["in standard input: the document is empty", "hint: name a file, or pipe a document in"]),
    ("fit shaeps.json", 2, &["cannot read `shaeps.json`", "hint: did you mean `shapes.json`?"]),
    ("report shapes.json --html report.pdf", 2, &["`--html`: the page for a browser is HTML", "hint: `report.html`"]),
    ("fits simple.json --data rows.txt --shard 1/2", 2, &["`--shard` needs a NumPy file: `--output-file OUT.npy`"]),
    ("fits merge rows.txt", 2, &["`rows.txt.json` does not say which toys are in the file beside it"]),
    ("combine --map labels.yml", 2, &["the map has no file for `low`", "hint: name the workspaces, or their files"]),
    ("combine --map nothing.yml", 2, &["the map has no `analyses`", "hint: name the workspaces, or their files"]),
    ("combine --map map.yml -o simple.json", 2, &["`simple.json` is an input of this command"]),
    // Names.
    ("fit simple.json --poi Mu", 2, &["the parameter of interest `Mu`", "did you mean `mu`?"]),
    ("fit shapes.json --fix lumii=1", 2, &["`--fix` names the parameter `lumii`", "did you mean `lumi`?"]),
    ("fit simple.json --measurement Meas", 2, &["unknown measurement `Meas`", "did you mean `Measurement`?"]),
    ("prune simple.json -c singelchannel", 2, &["no channel named `singelchannel`", "did you mean `singlechannel`?"]),
    ("fit shapes.json --mask SR", 2, &["`--mask` names the channel `SR`", "`nextstat inspect` lists the channels"]),
    ("fit shapes.json --minos mu,lumi", 2, &["hint: commas do not separate names: repeat `--minos NAME`"]),
    ("fiit simple.json", 2, &["unrecognized subcommand 'fiit'", "hint: did you mean `fit`?"]),
    ("impacts simple.json", 2, &["hint: `nextstat ranking` does this"]),
    ("prune shapes.json -m theory_*", 0, &[]),
    // Before anything is read: there is no such file.
    ("fit absent.json --format csv --table paramters", 2, &["no table `paramters`", "did you mean `parameters`?"]),
    ("yields shapes.json --group a=ttbar --group a=wjets", 2, &["the group `a` is defined twice", "by commas"]),
    ("ranking shapes.json --group a=lumi --group a=theory_*", 2, &["the group `a` is defined twice", "by commas"]),
    // Values.
    ("fit simple.json --fix mu", 2, &["expected `NAME=VALUE`, such as `mu=1`"]),
    ("fit simple.json --bounds mu=-5,5", 2, &["expected `NAME=LO:HI`, such as `mu=-5:5`"]),
    ("ranking shapes.json --group theory_*", 2, &["expected `NAME=PATTERN,PATTERN`, such as `group=theory_*`"]),
    ("fit simple.json --fix mu=nan", 2, &["`--fix` sets `mu` to NaN, which is not a finite number"]),
    ("fit simple.json --bounds mu=3:1", 2, &["`--bounds`: the range 3 to 1 of `mu` is empty"]),
    ("fit simple.json --asimov=inf", 2, &["`--asimov` sets `mu` to inf, which is not a finite number"]),
    ("limit simple.json --cl 0.3", 2, &["needs a confidence level above 0.5, and 0.3 is not"]),
    ("hypotest simple.json --mu nan", 2, &["`--mu` is NaN, which is not a finite number"]),
    ("scan simple.json --parameter mu --start 3 --stop 1", 2, &["starts at 3, which is not below its end 1"]),
    ("fit simple.json --threads 0", 2, &["`0` is not a number of threads: at least 1"]),
    ("hypotest simple.json 1", 2, &["hint: `--mu 1` is the value of the parameter of interest"]),
    ("limit simple.json --level 0.95", 2, &["which is below 0.5", "hint: `--cl 0.95` is a confidence level"]),
    ("limit shapes.json --at norm_ttbar=0,1,2", 2, &["expected `NAME=START:STOP:POINTS`, such as `norm_ttbar=0:5:11`"]),
    ("hypotest-toys simple.json --n-toys 5 --test-stat t", 2, &["[possible values: q, qtilde, q0]"]),
    ("interval simple.json --cl 95", 2, &["`--cl` is 95, which is not between 0 and 1", "hint: ", "0.95 for 95 %"]),
    ("interval simple.json --cl 0.68 --cl 0.95", 2, &["`--cl` is given 2 times", "one interval after the other"]),
    ("interval simple.json --tolerance 0", 2, &["the tolerance 0 is not a positive number", "4 times the toys"]),
    ("interval simple.json --construction upper --cl 0.05", 2, &["needs a confidence level above 0.5, and 0.05 is"]),
    ("interval shapes.json --grid mu=0:4:3", 2, &["`--grid` is given 1 time\n", "hint: `--grid mu=0:3:31"]),
    ("interval shapes.json --grid mu=0:4:3 --grid norm=0:1:3", 2, &["`--grid` names the parameter `norm`"]),
    ("interval shapes.json --grid mu=0:4:3 --grid mu=0:4:3", 2, &["`--grid` sets `mu` twice"]),
    (
        "interval shapes.json --grid mu=-1:4:3 --grid norm_ttbar=0.8:1.2:3",
        2,
        &["`--grid` sets `mu` to -1, outside its range, 0 to 20", "hint: `--bounds mu=LO:HI` sets another range"],
    ),
    ("search background.json", 2, &["`search` needs `--patchset FILE`"]),
    ("search background.json --patchset signals.json --patch-name signal_300", 2, &["leave `--patch-name` out"]),
    ("limit background.json --patchset signals.json --every-patch -p simple.json", 2, &["leave `--patch` out"]),
    ("search background.json --patchset signals.json --along mas", 2, &["has no label `mas`", "its labels are `mass`"]),
    ("search background.json --patchset plane.json --along m_lsp", 2, &["are not numbers that differ between all"]),
    ("search background.json --patchset signals.json --samples 5", 2, &["5 samples are too few"]),
    ("toys simple.json --n-toys 5 --mu 20", 2, &["sets `mu` to 20, outside its range", "--bounds mu=LO:HI"]),
    ("search background.json --patchset signals.json --toys 0", 2, &["--toys"]),
    ("search background.json --patchset signals.json --fix Mu=0", 2, &["`Mu`", "did you mean `mu`"]),
    ("signal-scan background.json", 2, &["--signals <FILE>"]),
    ("simplify shapes.json", 2, &["--channel <NAME>"]),
    ("simplify shapes.json --channel signal", 2, &["`--channel`", "did you mean `signal_region`"]),
    ("simplify shapes.json --channel signal_region", 2, &["determines `norm_ttbar`", "or fix it"]),
    ("simplify shapes.json --channel SR[0]", 2, &["`--channel`"]),
    ("simplify shapes.json --channel signal_region --form quadratic", 2, &["third-moments"]),
    ("signal-scan background.json --signals simple.json", 2, &["in `simple.json`", "expected a list", "/channels/0"]),
    (
        "signal-scan background.json --signals points.json",
        2,
        &["in `points.json`", "expected an object, found a list of 2 at line 1"],
    ),
    (
        "signal-scan shapes.json --signals signal_events.json",
        2,
        &["the background has a sample `signal` already", "hint: remove it from the background, or give"],
    ),
    ("signal-scan background.json --signals signal_events.json --normsys theory=1.1", 2, &["theory=0.9:1.1"]),
    (
        "signal-scan background.json --signals signal_events.json --limits --level 0.95",
        2,
        &["0.95", "is the level 0.05"],
    ),
    ("coverage simple.json", 2, &["--true <VALUE>"]),
    ("coverage simple.json --true 0,nan", 2, &["`--true` sets `mu` to NaN, which is not a finite number"]),
    (
        "coverage simple.json --true 11",
        2,
        &["`--true` sets `mu` to 11, outside its range, 0 to 10", "`--bounds mu=LO:HI`"],
    ),
    ("coverage simple.json --true 1 --cl 95", 2, &["`--cl` is 95, which is not between 0 and 1"]),
    ("coverage simple.json --true 1 --tolerance 0", 2, &["the tolerance 0 is not a positive number"]),
    ("coverage simple.json --true 1 --method feldman-cousins", 2, &["possible values: hessian, minos, cls, fc"]),
    ("coverage simple.json --true 1 --fix mu=1", 2, &["`coverage` varies `mu`"]),
    (
        "coverage simple.json --true 1 --method fc --n-toys 1000000000 --max-inner-toys 1000000",
        2,
        &["1000000000000000 toys are too many", "281474976710656"],
    ),
    ("interval simple.json --cl 1e-17", 2, &["the confidence level 0.00000000000000001 is too small"]),
    ("limit simple.json --tolerance 0.1", 2, &["--toys"]),
    ("limit simple.json --aux fixed", 2, &["--toys"]),
    ("limit simple.json --batch 4", 2, &["--toys"]),
    ("significance simple.json --aux fixed", 2, &["--toys"]),
    ("significance simple.json --batch 4", 2, &["--toys"]),
    (
        "significance simple.json --toys --bounds mu=0.5:10",
        2,
        &["the background is `mu` = 0, outside its range, 0.5 to 10", "hint: `--bounds mu=LO:HI`"],
    ),
    ("limit simple.json --toys --start 0 --stop 1", 2, &["cannot be used with"]),
    ("limit simple.json --asimov 0", 0, &[]),
    ("fit simple.json --minos mu", 0, &[]),
    ("limit simple.json --cl 0.95", 0, &[]),
    // Options of other programs.
    ("fit simple.json --level 0.95", 2, &["Usage: nextstat fit [OPTIONS] [WORKSPACE]", "hint: `limit --level`"]),
    ("fit simple.json --cl 0.95", 2, &["hint: `limit --cl`, `exclusion --cl`, `fit --minos-cl` and `scan"]),
    ("scan simple.json --parameter mu --range 0:5", 2, &["hint: `--start LO --stop HI` is the range of a scan"]),
    ("fit simple.json --range 0:5", 2, &["hint: `--bounds NAME=LO:HI` is the range of a parameter"]),
    ("fit shapes.json --channels signal_region", 2, &["hint: `--fit-channels 'CR_*'` and `--mask SR`"]),
    ("fit shapes.json --mask signal_region", 0, &[]),
    ("toys simple.json -n 10", 2, &["hint: `--n-toys N` is the number of toys"]),
    ("limit simple.json --calctype toybased", 2, &["`hypotest-toys` tests one value by toys"]),
    ("fit simple.json --html fit.html", 2, &["hint: `report --html FILE` writes a page for a browser"]),
    ("fit simple.json --plot", 2, &["hint: figures are drawn by `nextstat.plot`"]),
    ("fit simple.json --summary --quiet", 0, &[]),
    ("fit simple.json -t -1 --asimov=1", 2, &["cannot be used with"]),
    ("fit simple.json -t -1 --asimov-at mu=1", 2, &["cannot be used with"]),
    ("hypotest simple.json --test-stat q0 --mu 1", 2, &["`q0` tests the value 0 of the parameter of interest, not 1"]),
    ("fit simple.json -o fit.json", 0, &[]),
    ("fit simple.json --format latex --json", 2, &["'--format <FORMAT>' cannot be used with '--json'"]),
    ("fit simple.json --output fit.json", 0, &[]),
    ("combine simple.json shapes.json background.json --join outer", 2, &["the channel `signal_region`", "hint: "]),
];

/// Makes the files that the mistakes name.
fn files() -> Scratch {
    let scratch = Scratch::new("plausible_mistakes");
    for example in [
        "simple.json",
        "shapes.json",
        "background.json",
        "signals.json",
        "plane.json",
        "points.json",
        "signal_events.json",
    ] {
        std::fs::copy(folder("examples").join(example), scratch.path(example)).expect("an example");
    }
    let texts: [(&str, &[u8]); 9] = [
        ("rows.txt", b"57 63\n51 48\n"),
        ("labels.yml", b"analyses: {low: {measurement: m}}\n"),
        ("nothing.yml", b"correlate: [mu]\n"),
        ("map.yml", b"analyses: {low: simple.json, high: shapes.json}\n"),
        ("README.md", b"# Title\n"),
        ("config.yml", b"General:\n  Measurement: m\n"),
        ("histograms.root", b"root\0\0\xf3\x10\0"),
        ("combination.xml", b"<?xml version=\"1.0\"?>\n<Combination/>\n"),
        ("hs3.json", br#"{"metadata": {"hs3_version": "0.2"}, "distributions": [], "likelihoods": []}"#),
    ];
    for (name, text) in texts {
        std::fs::write(scratch.path(name), text).expect("a scratch folder");
    }
    scratch
}

fn explains(run: &Run, (arguments, code, fragments): &Mistake) -> bool {
    // Tips of the parser know neither the other verbs nor the field.
    let is_ours = !run.stderr.contains("tip:") && !run.stderr.contains("panicked");
    let is_explained = run.code == Some(*code) && fragments.iter().all(|fragment| run.stderr.contains(fragment));
    if !is_ours || !is_explained {
        eprintln!("nextstat {arguments}: exit code {:?}, {}", run.code, run.stderr);
    }
    is_ours && is_explained
}

#[test]
fn plausible_mistakes_are_explained() {
    let scratch = files();
    let folder = std::path::PathBuf::from(scratch.path("."));
    let explained = MISTAKES.iter().filter(|mistake| {
        let arguments: Vec<&str> = mistake.0.split(' ').collect();
        let run = if arguments.last() == Some(&"-") {
            with_stdin(&folder, &arguments, b"")
        } else {
            nextstat(&folder, &arguments)
        };
        explains(&run, mistake)
    });
    assert_eq!(explained.count(), MISTAKES.len());
}

#[test]
fn a_range_of_the_parameter_of_interest_needs_one() {
    let scratch = Scratch::new("range-without-poi");
    let text = std::fs::read_to_string(folder("examples").join("shapes.json")).expect("an example");
    std::fs::write(scratch.path("ws.json"), text.replace("\"poi\": \"mu\"", "\"poi\": \"\""))
        .expect("a scratch folder");
    let run = nextstat(&folder("examples"), &["fit", &scratch.path("ws.json"), "--rMax", "0.1"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("the model has none") && run.stderr.contains("--bounds NAME=LO:HI"), "{}", run.stderr);
}
