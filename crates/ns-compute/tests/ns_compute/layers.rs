//! The order of the modules of this crate.

use ns_testkit::layers::assert_order;
use std::path::Path;

#[test]
fn the_cpu_knows_nothing_of_accelerators() {
    assert_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[&["cpu"], &["accel"]], |name| Some(name));
}
