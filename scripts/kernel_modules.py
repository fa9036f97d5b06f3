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
    # The crate's folder; its kernels are in `kernels/` there.
    crate: str
    # Headers in the order in which they are put together, the dialect before them.
    headers: tuple[str, ...]
    # For which PTX is made.
    precisions: tuple[str, ...] = ("f64",)
    # The C++ file that exports the kernels on the host.
    emulated: str = "emulated.cpp"
    # Tests whose launches are recorded and replayed under sanitizers: arguments of `cargo test`.
    record: tuple[str, ...] = ()
    # Whether OpenCL C can read it, which has no templates: `is_c` of the module in Rust.
    is_c: bool = True
    # More options for NVRTC, or others: `--fmad=true` where products and sums may be fused.
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> pathlib.Path:
        return ROOT / self.crate / "kernels"

    def sources(self) -> list[pathlib.Path]:
        return [DIALECT, *(self.folder / header for header in self.headers)]

    def text(self) -> str:
        return "".join(path.read_text(encoding="utf-8") for path in self.sources())


def included(path: str) -> tuple[str, ...]:
    """The headers that a header includes, in order: where there is one that includes all, it alone
    knows the order."""
    return tuple(re.findall(r'^#include "(.*)"$', (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE))


MODULES = (
    KernelModule(
        name="self_test",
        crate="crates/ns-device",
        headers=("self_test.h",),
        precisions=("f64", "f32"),
        record=("-p", "ns-device", "--test", "ns_device", "--", "self_test_passes_in_both", "recorded_for_the_sanitizers"),
    ),
    KernelModule(
        name="likelihood",
        crate="crates/ns-compute",
        headers=included("crates/ns-compute/kernels/all.h"),
        # Fused: the hot loops are sums of products, and a fused one is half the instructions and a
        # rounding less. Registers and spills are the same either way. The emulation does not fuse,
        # except for `make kernels-fused`, which holds the same tolerances with it.
        options=("--fmad=true",),
        record=("-p", "ns-compute", "--test", "ns_compute", "--", "recorded_for_the_sanitizers"),
    ),
    KernelModule(
        name="transformer",
        crate="torchless",
        headers=included("torchless/kernels/all.h"),
        # Single precision, as weights and caches are.
        precisions=("f32",),
        is_c=False,
        record=("-p", "torchless", "--test", "torchless", "--", "recorded_for_the_sanitizers"),
    ),
)
