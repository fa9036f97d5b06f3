"""A virtual environment of pinned wheels, made when it is first needed: compilers without their
toolkits."""
import hashlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def wheels(*requirements: str) -> pathlib.Path:
    """The folder `site-packages/nvidia` of an environment with these wheels."""
    name = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]
    folder = ROOT / ".venv-kernels" / name
    done = folder / "installed"
    if not done.exists():
        print(f"installing {' '.join(requirements)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *requirements], check=True)
        done.touch()
    return next(folder.glob("lib/python*/site-packages/nvidia"))
