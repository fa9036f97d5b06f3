//! A job of Slurm: an array of shards, and a merge that depends on it.

use super::shell::quoted;
use super::{JobRequest, Places, SUBMIT, Script};

/// How often a shard that was killed is put into the queue again.
const RESTARTS: u32 = 3;

/// Returns the scripts for `sbatch`, and the one that submits them.
///
/// Slurm reads a `#SBATCH` line with rules of its own, and runs a copy of the script. So these
/// lines have no paths but names in the folder, where `submit.sh` calls `sbatch`, and the commands
/// have absolute ones.
pub(super) fn scripts(request: &JobRequest, places: &Places) -> [Script; 3] {
    let (n_shards, n_threads) = (request.n_shards, request.n_threads);
    let at_once = request.at_once.map(|n| format!("%{n}")).unwrap_or_default();
    let directives: String = request.directives.iter().map(|line| format!("#SBATCH {line}\n")).collect();
    let folder = quoted(&places.folder);
    let array = format!(
        "#!/bin/sh
#SBATCH --job-name=nextstat
#SBATCH --array=1-{n_shards}{at_once}
#SBATCH --cpus-per-task={n_threads}
#SBATCH --output=shard-%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
{directives}sh {folder}/shard.sh \"$SLURM_ARRAY_TASK_ID\"
code=$?
# Slurm requeues what its machine fails, and not what is killed on it. 143 is the signal by which
# it ends a job itself.
if [ $code -gt 128 ] && [ $code -ne 143 ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {RESTARTS} ]; then
    scontrol requeue \"$SLURM_JOB_ID\" && sleep 60
fi
exit $code
"
    );
    let merge = format!(
        "#!/bin/sh
#SBATCH --job-name=nextstat-merge
#SBATCH --output=merge.log
#SBATCH --open-mode=append
{directives}exec sh {folder}/merge.sh
"
    );
    let submit = format!(
        "#!/bin/sh
# Submits all shards, and the merge, which waits for them. Finished shards are kept, so that the
# same script continues after a failure.
cd {folder} || exit 2
array=$(sbatch --parsable array.sbatch) || exit 2
# A federation appends the name of its cluster.
array=${{array%%;*}}
merge=$(sbatch --parsable --dependency=\"afterok:$array\" --kill-on-invalid-dep=yes merge.sbatch) || exit 2
echo \"shards: job $array, merge: job ${{merge%%;*}}\"
"
    );
    [
        Script { name: "array.sbatch", text: array },
        Script { name: "merge.sbatch", text: merge },
        Script { name: SUBMIT, text: submit },
    ]
}
