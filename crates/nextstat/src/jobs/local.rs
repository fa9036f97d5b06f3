//! A job without a scheduler: a POSIX shell script that runs some shards at once.

use super::shell::quoted;
use super::{JobRequest, Places, SUBMIT, Script};

/// How often a shard is run before it counts as failed.
const ATTEMPTS: u32 = 3;

/// Returns the script that runs all shards and then merges them.
///
/// A shard that is killed is run again, up to [`ATTEMPTS`] times in all. One that fails does not
/// keep the others from running. Bad input (exit code 2) stays bad and is not run again.
pub(super) fn submit(request: &JobRequest, places: &Places) -> Script {
    let n_shards = request.n_shards;
    let at_once = request.at_once.map_or_else(|| one_each(request), u32::from).min(n_shards.get());
    let folder = quoted(&places.folder);
    let text = format!(
        "#!/bin/sh
# Runs all shards, then the merge. Finished shards are kept, so that the same script continues after
# a failure.
cd {folder} || exit 2
n_shards={n_shards}
at_once={at_once}

# Runs a shard, again if it is killed.
run() {{
    attempt=1
    while :; do
        sh ./shard.sh \"$1\" >\"shard-$1.log\" 2>&1 &
        child=$!
        wait $child
        code=$?
        # 2 is bad input, which stays bad.
        if [ $code -eq 0 ] || [ $code -eq 2 ] || [ $attempt -eq {ATTEMPTS} ]; then
            return $code
        fi
        attempt=$((attempt + 1))
    done
}}

# Runs one of at_once shards, and then every at_once-th after it.
work() {{
    trap 'kill $child; wait $child; exit 143' TERM
    shard=$1
    failed=0
    while [ $shard -le $n_shards ]; do
        if ! run $shard; then
            echo \"error: shard $shard ended with exit code $code\" >&2
            cat \"shard-$shard.log\" >&2
            failed=1
        fi
        shard=$((shard + at_once))
    done
    exit $failed
}}

workers=
first=1
while [ $first -le $at_once ]; do
    work $first &
    workers=\"$workers $!\"
    first=$((first + 1))
done
trap 'kill $workers; wait; exit 130' INT TERM
failed=0
for worker in $workers; do
    wait $worker || failed=1
done
if [ $failed -ne 0 ]; then
    echo \"hint: run this script again to continue\" >&2
    exit 2
fi
exec sh ./merge.sh
"
    );
    Script { name: SUBMIT, text }
}

/// Returns how many shards the processors of this machine can run at once, at least one.
fn one_each(request: &JobRequest) -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    (processors / request.n_threads).max(1)
}
