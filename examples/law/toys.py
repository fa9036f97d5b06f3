"""Toys in shards, and their merge, as tasks of law: `law run toys.MergedToys --workers 2`.

Each shard is a branch of a workflow. The result has the bytes of one run of `nextstat toys`. A
shard that is killed continues, also when law is started again: what it has is in FILE.npy.part,
which is no target.

For a cluster, `Shard` inherits from the workflow of its scheduler, too, such as
`law.slurm.SlurmWorkflow`, and `--workflow slurm` chooses it.
"""

import subprocess
from pathlib import Path

import law
import luigi


class ToyTask(law.Task):
    """What a run of toys is."""

    workspace = luigi.Parameter(default="../shapes.json")
    n_toys = luigi.IntParameter(default=4000)
    n_shards = luigi.IntParameter(default=4)
    seed = luigi.IntParameter(default=1)

    def file(self, name):
        """Returns the target of a file in the working directory; relative paths of law's targets
        begin at the root.
        """
        return law.LocalFileTarget(str(Path(name).absolute()))

    def nextstat(self, *arguments):
        """Runs the command, again if it is killed, up to three times.

        Exit code 1 says that some fits did not converge: a result, too.
        """
        for _ in range(3):
            code = subprocess.run(["nextstat", *map(str, arguments)], check=False).returncode
            if code in (0, 1):
                return
            if code == 2:
                break
        raise RuntimeError(f"nextstat ended with exit code {code}")


class Shard(ToyTask, law.LocalWorkflow):
    """The shards of a run, one for each branch."""

    def create_branch_map(self):
        return {branch: branch + 1 for branch in range(self.n_shards)}

    def output(self):
        name = f"shards/{self.branch_data}.npy"
        return {"toys": self.file(name), "about": self.file(f"{name}.json")}

    def run(self):
        toys = self.output()["toys"]
        Path(toys.path).parent.mkdir(exist_ok=True)
        options = ["--n-toys", self.n_toys, "--seed", self.seed, "--threads", 1]
        shard = ["--resume", "--shard", f"{self.branch_data}/{self.n_shards}", "--output-file", toys.path]
        self.nextstat("toys", self.workspace, *options, *shard)


class MergedToys(ToyTask):
    """All toys of a run."""

    def requires(self):
        return Shard.req(self)

    def output(self):
        return self.file("toys.npy")

    def run(self):
        shards = [shard["toys"].path for shard in self.input()["collection"].targets.values()]
        self.nextstat("toys", "merge", *shards, "--output-file", self.output().path)
