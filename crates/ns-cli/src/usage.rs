//! Usage errors: clap's messages, with hints about common mistakes; and options whose value may be
//! left out.

use crate::error::CliError;
use crate::output::reporter::hint;
use crate::status::Status;
use crate::verbs::Cli;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

/// Options whose value may be left out, and whether it is a number. The parser takes a value only
/// after an equals sign; [`joined`] writes it for words that can be nothing else.
const OPTIONAL_VALUES: [(&str, bool); 3] = [("--asimov", true), ("--multi-start", true), ("--minos", false)];

/// What users of other tools type, and what does the same here; `None` for every verb.
const ELSEWHERE: &[(&str, Option<&str>, &str)] = &[
    ("--cl", None, "`limit --cl`, `exclusion --cl`, `fit --minos-cl` and `scan --contour` take confidence levels"),
    ("--confidence-level", Some("limit"), "`--cl 0.95` is the confidence level"),
    ("--range", Some("scan"), "`--start LO --stop HI` is the range of a scan"),
    ("--range", None, "`--bounds NAME=LO:HI` is the range of a parameter"),
    ("--level", None, "`limit --level` is the CLs of a limit"),
    ("--nuisance", None, "`--parameter NAME` names a parameter"),
    ("-n", Some("toys"), "`--n-toys N` is the number of toys"),
    ("-n", Some("hypotest-toys"), "`--n-toys N` is the number of toys"),
    ("-n", Some("scan"), "`--points N` is the number of points"),
    ("-n", Some("ranking"), "`--top N` is the number of parameters in the table"),
    ("--ntoys", None, "`--n-toys N` is the number of toys"),
    ("--calctype", Some("limit"), "limits are by formulas; `hypotest-toys` tests one value by toys"),
    ("--toys", None, "`toys`, `hypotest-toys` and `gof --toys N` throw toys"),
    ("--data", None, "`fits --data FILE` fits data sets of your own"),
    ("--channels", None, "`--fit-channels 'CR_*'` and `--mask SR` choose channels"),
    (
        "--blind",
        None,
        "`--mask SR` leaves a channel out of the fit; `yields` and `report`, which show data, have `--blind`",
    ),
    ("--mask", None, "the verbs that fit have `--mask`; `prune -c` removes a channel from a workspace"),
    ("--fit", None, "`--from FILE` takes the result of a fit, for the verbs that have it"),
    ("--plot", None, "figures are drawn by `nextstat.plot` of the Python package"),
    ("--html", None, "`report --html FILE` writes a page for a browser"),
    ("--latex", None, "`--format latex` writes a table for a paper, and `nextstat table` that of a stored result"),
    ("--csv", None, "`--format csv` writes a table, and `nextstat table` that of a stored result"),
    ("-M", None, "the verb is the method: `limit`, `fit`, `scan`, `significance`, `gof`, `ranking`"),
    ("--algo", None, "`fit --minos r` is `singles`, `scan` is `grid`"),
    ("--setParameterRanges", None, "`--bounds NAME=LO:HI` is the range of a parameter"),
    ("--channel-masks", None, "`--mask CHANNEL` leaves a channel out of the fit"),
    ("--verbose", None, "`--summary` prints the table, `--json` the whole result"),
    ("-v", None, "`--summary` prints the table, `--json` the whole result"),
];

/// What users of other tools call the work of a verb.
const VERBS_ELSEWHERE: [(&str, &str); 18] = [
    ("impacts", "ranking"),
    ("impact", "ranking"),
    ("Impacts", "ranking"),
    ("AsymptoticLimits", "limit"),
    ("FitDiagnostics", "fit"),
    ("MultiDimFit", "fit"),
    ("Significance", "significance"),
    ("HybridNew", "hypotest-toys"),
    ("GoodnessOfFit", "gof"),
    ("combineCards.py", "combine"),
    ("text2workspace.py", "sort"),
    ("pulls", "report"),
    ("upperlimit", "limit"),
    ("upper-limit", "limit"),
    ("upper_limit", "limit"),
    ("goodness", "gof"),
    ("prediction", "yields"),
    ("version", "--version"),
];

/// Returns the arguments with a value that follows an option of optional value joined to it:
/// `--asimov 0` becomes `--asimov=0`, unless the next word is a workspace. `-m` becomes `--mass`.
pub(crate) fn joined(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut found: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut is_option = true;
    // For these, `-m` is a modifier.
    let has_mass =
        !arguments.get(1).is_some_and(|verb| ["decorrelate", "prune", "rename"].iter().any(|own| verb == own));
    for argument in arguments {
        let argument = if has_mass && is_option && argument == "-m" { OsString::from("--mass") } else { argument };
        let option = found.last().and_then(|last| OPTIONAL_VALUES.iter().find(|(name, _)| last == name));
        match option.filter(|(_, is_number)| is_option && is_value(&argument, *is_number)) {
            Some((name, _)) => {
                let mut whole = OsString::from(format!("{name}="));
                whole.push(&argument);
                found.pop();
                found.push(whole);
            }
            None => found.push(argument),
        }
        // After `--` every word is an argument.
        is_option &= found.last().is_some_and(|last| last != "--");
    }
    found
}

/// Returns `true` if `word` can only be the value of the option before it.
fn is_value(word: &OsString, is_number: bool) -> bool {
    let Some(text) = word.to_str() else { return false };
    if is_number {
        return text.parse::<f64>().is_ok() && !Path::new(text).exists();
    }
    !text.starts_with('-') && !text.contains(['/', '\\']) && !is_document(text) && !Path::new(text).exists()
}

/// Returns `true` if `name` ends as the names of documents do.
fn is_document(name: &str) -> bool {
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    Path::new(name).extension().is_some_and(|extension| ["json", "xml", "txt"].iter().any(|known| extension == *known))
}

/// Prints help and version to standard output, and usage errors to standard error with exit code 2.
/// A closed pipe is not an error.
pub(crate) fn explain(mut error: clap::Error, arguments: &[OsString]) -> u8 {
    if !error.use_stderr() {
        return crate::exit_code(print(&error));
    }
    let verb = arguments.get(1).and_then(|verb| verb.to_str()).unwrap_or_default();
    let advice = advice(&error, verb, arguments);
    // clap proposes anything that begins alike, to escape what begins with a dash, and a usage with
    // the option that it proposes.
    for context in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::Suggested,
    ] {
        error.remove(context);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage(arguments)));
    }
    // A closed standard error is ignored.
    let _ = error.print();
    advice.iter().for_each(|advice| hint(advice));
    crate::UNUSABLE
}

/// Returns the usage of the verb that the arguments name.
fn usage(arguments: &[OsString]) -> StyledStr {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &cli;
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        let Some(found) = command.find_subcommand(word) else { break };
        command = found;
    }
    command.clone().render_usage()
}

/// Returns what the user may have meant.
fn advice(error: &clap::Error, verb: &str, arguments: &[OsString]) -> Option<String> {
    let invalid = |kind| match error.get(kind) {
        Some(ContextValue::String(invalid)) => Some(invalid.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => meant_verb(invalid(ContextKind::InvalidSubcommand)?),
        ErrorKind::InvalidValue => {
            let ContextValue::Strings(known) = error.get(ContextKind::ValidValue)? else { return None };
            let known = known.iter().map(String::as_str);
            ns_core::similarity::did_you_mean(invalid(ContextKind::InvalidValue)?, known)
        }
        ErrorKind::UnknownArgument => meant_option(invalid(ContextKind::InvalidArg)?, verb, arguments),
        _ => None,
    }
}

/// Returns advice on a word that is not a verb.
fn meant_verb(word: &str) -> Option<String> {
    if let Some((_, verb)) = VERBS_ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == word) {
        return Some(format!("`nextstat {verb}` does this"));
    }
    let cli = Cli::command();
    let verbs = cli.get_subcommands().map(Command::get_name);
    ns_core::similarity::did_you_mean(word, verbs).or_else(|| Some("`nextstat --help` lists the verbs".to_owned()))
}

/// Returns advice on an option that the verb does not have.
fn meant_option(argument: &str, verb: &str, arguments: &[OsString]) -> Option<String> {
    if ["--gpu", "--device"].contains(&argument) {
        return Some(format!("this verb runs on the CPU; `{argument}` is an option of {}", on_devices().join(", ")));
    }
    let is_of = |(option, of, _): &&(&str, Option<&str>, &str)| *option == argument && of.is_none_or(|of| of == verb);
    if let Some((_, _, advice)) = ELSEWHERE.iter().find(is_of) {
        return Some((*advice).to_owned());
    }
    if !argument.starts_with('-') {
        return unexpected_word(argument, verb, arguments);
    }
    let cli = Cli::command();
    let options = cli.find_subcommand(verb)?.get_arguments().filter_map(clap::Arg::get_long);
    let similar = ns_core::similar_name(argument.trim_start_matches('-'), options)?;
    Some(format!("did you mean `--{similar}`?"))
}

/// Returns advice on a word that no option takes.
fn unexpected_word(word: &str, verb: &str, arguments: &[OsString]) -> Option<String> {
    let is_number = word.parse::<f64>().is_ok();
    if is_number && ["hypotest", "cls", "hypotest-toys", "significance", "toys"].contains(&verb) {
        return Some(format!("`--mu {word}` is the value of the parameter of interest"));
    }
    let (option, _) = OPTIONAL_VALUES.iter().find(|(option, _)| arguments.iter().any(|argument| argument == option))?;
    Some(format!("write a value of `{option}` with an equals sign: `{option}={word}`"))
}

/// Prints help or the version.
fn print(error: &clap::Error) -> Result<Status, CliError> {
    crate::output::require_stdout()?;
    error.print().and_then(|()| io::stdout().flush()).map_err(crate::output::stdout_error)?;
    Ok(Status::Done)
}

/// Returns the verbs that can compute on an accelerator.
fn on_devices() -> Vec<String> {
    let has_devices = |verb: &&Command| verb.get_arguments().any(|argument| argument.get_id() == "gpu");
    Cli::command().get_subcommands().filter(has_devices).map(|verb| format!("`{}`", verb.get_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::joined;

    fn join(words: &str) -> String {
        let words = joined(words.split(' ').map(Into::into).collect());
        words.iter().map(|word| word.to_str().expect("text")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_join_their_option() {
        assert_eq!(join("nextstat fit ws.json --asimov 0 -q"), "nextstat fit ws.json --asimov=0 -q");
        assert_eq!(join("nextstat fit --asimov -0.5 ws.json"), "nextstat fit --asimov=-0.5 ws.json");
        assert_eq!(
            join("nextstat fit ws.json --minos mu --minos JES_*"),
            "nextstat fit ws.json --minos=mu --minos=JES_*"
        );
        assert_eq!(join("nextstat fit ws.json --multi-start 10"), "nextstat fit ws.json --multi-start=10");
        assert_eq!(join("nextstat fit card.txt -m 125"), "nextstat fit card.txt --mass 125");
    }

    #[test]
    fn workspaces_and_options_do_not() {
        for words in [
            "nextstat fit --asimov ws.json",
            "nextstat fit --minos ws.json",
            "nextstat fit --minos ws.json.gz",
            "nextstat fit --minos ./data",
            "nextstat fit --minos -q ws.json",
            "nextstat fit --minos -- mu",
            "nextstat fit --asimov=1 0",
            "nextstat prune -m sys ws.json",
        ] {
            assert_eq!(join(words), words);
        }
    }
}
