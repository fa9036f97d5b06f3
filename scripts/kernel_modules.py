"""The kernel modules of this repository, for the scripts that compile, check and sanitize them. A
client adds its own here."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICE = ROOT / "crates/ns-device"
DIALECT = DEVICE / "kernels/dialect.h"


@dataclasses.dataclass(frozen=True)
class KernelModule:
    """One text of kernels."""

    # The `NAME` of `NAME.f64.ptx`.
    name: str
    # The crate's folder; its kernels are in `kernels/` there, or in a folder of that.
    crate: str
    # The header that the text consists of, the dialect before it: `all.h` includes the others.
    header: str
    # For which PTX is made.
    precisions: tuple[str, ...] = ("f64",)
    # The C++ file that exports the kernels on the host.
    emulated: str = "emulated.cpp"
    # Tests whose launches are recorded and replayed under sanitizers: arguments of `cargo test`.
    record: tuple[str, ...] = ()
    # The folder of the kernels in `kernels/`, if it is not that one.
    inner: str = "."
    # More options for NVRTC, or others: `--fmad=true` where products and sums may be fused.
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> pathlib.Path:
        return ROOT / self.crate / "kernels" / self.inner

    def sources(self) -> list[pathlib.Path]:
        """The files that the text is put together of, each once, without those that only include
        others."""
        return [DIALECT, *dict.fromkeys(path for path in included(self.folder / self.header) if INCLUDE.sub("", without_comments(path)).strip())]

    def text(self, has_places: bool = False) -> str:
        """The dialect and the kernels, with every included header in its place, as often as it is
        included; if asked, with the places that compilers report."""
        return "".join(expanded(path, has_places) for path in (DIALECT, self.folder / self.header))


INCLUDE = re.compile(r'^#include "(.*)"\n', re.MULTILINE)


def without_comments(path: pathlib.Path) -> str:
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8"))


def included(path: pathlib.Path):
    """The header and those that it includes, in order."""
    yield path
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        yield from included(path.parent / name)


def expanded(path: pathlib.Path, has_places: bool) -> str:
    name, text = path.relative_to(ROOT).as_posix(), ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        if found := INCLUDE.match(line):
            text += expanded(path.parent / found.group(1), has_places)
            text += f'#line {number + 1} "{name}"\n' if has_places else ""
        else:
            text += line
    return (f'#line 1 "{name}"\n' if has_places else "") + text


MODULES = (
    KernelModule(
        name="self_test",
        crate="crates/ns-device",
        header="self_test.h",
        precisions=("f64", "f32"),
        record=("-p", "ns-device", "--test", "ns_device", "--", "self_test_passes_in_both", "recorded_for_the_sanitizers"),
    ),
    KernelModule(
        name="likelihood",
        crate="crates/ns-compute",
        header="all.h",
        # Fused: the hot loops are sums of products, and a fused one is half the instructions and a
        # rounding less. Registers and spills are the same either way. The emulation does not fuse,
        # except for `make kernels-fused`, which holds the same tolerances with it.
        options=("--fmad=true",),
        record=("-p", "ns-compute", "--test", "ns_compute", "--", "recorded_for_the_sanitizers"),
    ),
    KernelModule(
        name="transformer",
        crate="torchless",
        header="all.h",
        # Single precision, as weights and caches are.
        precisions=("f32",),
        record=("-p", "torchless", "--test", "torchless", "--", "devices::launches::recorded_for_the_sanitizers"),
    ),
    KernelModule(
        name="encoder",
        crate="torchless",
        header="all.h",
        inner="encoder",
        # Single precision, as the numbers between steps are.
        precisions=("f32",),
        record=("-p", "torchless", "--test", "torchless", "--", "encoders::devices::recorded_for_the_sanitizers"),
    ),
)
