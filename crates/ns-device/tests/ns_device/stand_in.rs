//! Stand-ins for drivers' libraries (`checks/`), and tests that run themselves in a process which
//! finds one.

use ns_device::{Kernel, KernelModule};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module without any text.
pub(crate) const EMPTY: KernelModule =
    KernelModule { name: "empty", ptx_f64: None, ptx_f32: None, source: None, emulated: &[] };

/// A kernel by its module and name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named(pub(crate) &'static KernelModule, pub(crate) &'static str);

impl Kernel for Named {
    fn module(&self) -> &'static KernelModule {
        self.0
    }

    fn name(&self) -> &'static str {
        self.1
    }
}

/// Compiles `checks/{check}.cpp` with the kernels, emulated, and returns the folder in which
/// `library` then is; `None` without a compiler.
pub(crate) fn compile(check: &str, library: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stand-in-{check}"));
    std::fs::create_dir_all(&folder).ok()?;
    let compile = |arguments: &[&str], output: &str| {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-O1", "-fPIC", "-pthread", "-ffp-contract=off", "-DNS_EMULATION_LIST"]);
        command.args(["-Iemulation", "-Ikernels"]).args(arguments).arg("-o").arg(folder.join(output));
        command.current_dir(root).status().ok().filter(std::process::ExitStatus::success)
    };
    compile(&["-c", "-DREAL=double", "-DPRECISION=f64", "kernels/emulated.cpp"], "f64.o")?;
    compile(&["-c", "-DREAL=float", "-DPRECISION=f32", "kernels/emulated.cpp"], "f32.o")?;
    let [double, single] = ["f64.o", "f32.o"].map(|name| folder.join(name).display().to_string());
    let check = format!("checks/{check}.cpp");
    compile(&["-shared", "-fvisibility=hidden", &check, "emulation/runtime.cpp", &double, &single], library)?;
    Some(folder)
}

/// The variable that a test has in such a process.
const IS_CHILD: &str = "NS_DEVICE_STAND_IN";

/// Returns `true` in a process that a test runs itself in.
pub(crate) fn is_child() -> bool {
    std::env::var_os(IS_CHILD).is_some()
}

/// Runs the test called `name` again in a process with `environment`. Returns `true` in that
/// process, which then does the work.
pub(crate) fn in_child<'a>(name: &str, environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
    if is_child() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().expect("a test has a file"));
    child.args(["--exact", name, "--nocapture"]).env(IS_CHILD, "1").envs(environment);
    let output = child.output().expect("a test can run itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "no test is called `{name}`");
    false
}

/// Returns the folder of a stand-in, or panics without a compiler.
pub(crate) fn found(folder: &Option<PathBuf>) -> &str {
    let folder = folder.as_ref().expect("a C++ compiler makes the stand-in; `CXX` names another than `c++`");
    folder.to_str().expect("a folder of the build")
}
