//! A job of HTCondor: a graph of DAGMan whose nodes are the shards and their merge.

use super::shell::quoted;
use super::{JobRequest, Places, SUBMIT, Script};
use std::fmt::Write as _;

/// How often DAGMan runs a shard again.
const RETRIES: u32 = 3;

/// Returns the submit files, the graph, and the script that submits it.
///
/// A shard is a node, not a process of one cluster: DAGMan removes a whole cluster when one of its
/// processes fails. Files have names in the folder, where `submit.sh` calls `condor_submit_dag`, so
/// that no path needs the quotation marks of HTCondor.
pub(super) fn scripts(request: &JobRequest, places: &Places) -> [Script; 4] {
    let directives: String = request.directives.iter().map(|line| format!("{line}\n")).collect();
    let common = "should_transfer_files = IF_NEEDED\ntransfer_output_files = \"\"\nlog = job.log\n";
    let shard = format!(
        "executable = shard.sh
arguments = $(shard)
output = shard-$(shard).out
error = shard-$(shard).log
request_cpus = {}
{common}{directives}queue
",
        request.n_threads
    );
    let merge = format!(
        "executable = merge.sh
output = merge.out
error = merge.log
request_cpus = 1
{common}{directives}queue
"
    );
    let at_once = request.at_once.map(|n| format!(" -maxjobs {n}")).unwrap_or_default();
    let folder = quoted(&places.folder);
    let submit = format!(
        "#!/bin/sh
# Submits all shards, and the merge, which waits for them. Finished shards are kept, so that the
# same script continues after a failure.
cd {folder} || exit 2
exec condor_submit_dag -force{at_once} job.dag
"
    );
    [
        Script { name: "shard.sub", text: shard },
        Script { name: "merge.sub", text: merge },
        Script { name: "job.dag", text: graph(request.n_shards.get()) },
        Script { name: SUBMIT, text: submit },
    ]
}

/// Returns the graph. A shard with bad input (exit code 2) is not run again.
fn graph(n_shards: u32) -> String {
    let mut graph = String::from("JOB merge merge.sub\n");
    for shard in 1..=n_shards {
        let _ = writeln!(graph, "JOB shard-{shard} shard.sub");
        let _ = writeln!(graph, "VARS shard-{shard} shard=\"{shard}\"");
        let _ = writeln!(graph, "RETRY shard-{shard} {RETRIES} UNLESS-EXIT 2");
        let _ = writeln!(graph, "PARENT shard-{shard} CHILD merge");
    }
    graph
}
