//! Scripts that every scheduler runs: one shard, and the merge of all.

use super::{JobRequest, Places, Script};

/// Returns `word` as a POSIX shell reads it: itself if nothing in it has a meaning there, in
/// quotation marks otherwise.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the words of a command line, each of them quoted.
fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns the script that computes the shard whose number is its argument.
///
/// It passes on the signal by which a scheduler stops it. Exit code 1 of the command says that some
/// fits did not converge, as the merged result does again, and becomes 0: the shard is done.
pub(super) fn shard(request: &JobRequest, places: &Places) -> Script {
    let (run, n_shards) = (&request.run, request.n_shards);
    let command = line([run.program.as_str(), run.verb]);
    let (option, words) = (run.file_option, line(run.words.iter().map(String::as_str)));
    let (working_directory, folder) = (quoted(&places.working_directory), quoted(&places.folder));
    let file = format!("{folder}\"/{}\"", run.file_of("$shard"));
    // What cannot be continued is finished if it is there.
    let (finished, resume) = match run.resumes {
        true => (String::new(), " --resume"),
        false => (format!("[ ! -e {file} ] || exit 0\n"), ""),
    };
    let text = format!(
        "#!/bin/sh
# Computes the shard whose number is the argument. A shard that was interrupted continues, and one
# that is finished is only read.
shard=${{1:?the number of the shard}}
cd {working_directory} || exit 2
{finished}child=
trap 'kill $child; wait $child; exit 143' TERM
{command}{resume} --shard \"$shard/{n_shards}\" {option} {file} {words} >/dev/null &
child=$!
wait $child
code=$?
# 1: some fits did not converge, as the merged result will say; the shard is finished.
[ $code -ne 1 ] || code=0
exit $code
"
    );
    Script { name: "shard.sh", text }
}

/// Returns the script that merges all shards. Its exit code is that of the command.
pub(super) fn merge(request: &JobRequest, places: &Places) -> Script {
    let (run, n_shards) = (&request.run, request.n_shards);
    let working_directory = quoted(&places.working_directory);
    let file = format!("{}\"/{}\"", quoted(&places.folder), run.file_of("$shard"));
    let command = line([run.program.as_str(), run.merged_by, "merge"]);
    let mut text = format!(
        "#!/bin/sh
# Joins all shards into one result.
cd {working_directory} || exit 2
set --
shard=1
while [ $shard -le {n_shards} ]; do
    set -- \"$@\" {file}
    shard=$((shard + 1))
done
"
    );
    let (last, others) = run.results.split_last().map_or((None, &[][..]), |(last, others)| (Some(last), others));
    for file in others {
        let file = quoted(&format!("--output-file={file}"));
        // 1 is a result, too.
        text += &format!("{command} \"$@\" --quiet {file} >/dev/null || [ $? -eq 1 ] || exit 2\n");
    }
    if let Some(file) = last {
        text += &format!("exec {command} \"$@\" {}\n", quoted(&format!("--output-file={file}")));
    }
    Script { name: "merge.sh", text }
}

#[cfg(test)]
mod tests {
    use super::quoted;
    use std::process::Command;

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_quoted_words_as_they_were() {
        let words = [
            "",
            "plain",
            "a b",
            "it's",
            "'",
            "''",
            "\"$HOME\"",
            "$(id)",
            "`id`",
            "a\\b\\",
            "*",
            "~",
            "#",
            "!",
            "a\nb",
            "\tx ",
            ";|&<>",
            "é",
            "-x=y",
            "%s",
            "[a]",
            "{a,b}",
        ];
        for word in words {
            let script = format!("printf '<%s>' {}", quoted(word));
            let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("<{word}>"), "{script}");
        }
        assert_eq!(quoted("out/toys-1.npy"), "out/toys-1.npy");
    }
}
