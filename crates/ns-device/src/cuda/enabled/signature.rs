//! Reads a kernel's parameters from its PTX, for the driver would take whatever follows too few
//! arguments.

/// Returns the bytes of each parameter's constants, 0 for a buffer; none if the kernel is not there
/// or is written in another way.
///
/// ```text
/// .visible .entry scale(
///     .param .align 8 .b8 scale_param_0[16],   16: a struct
///     .param .u64 scale_param_1                 0: a pointer
/// )
/// ```
pub(super) fn of(ptx: &str, kernel: &str) -> Option<Vec<usize>> {
    let (_, after) = ptx.split_once(&format!(".entry {kernel}("))?;
    let (list, _) = after.split_once(')')?;
    list.split(',').filter(|parameter| !parameter.trim().is_empty()).map(bytes).collect()
}

fn bytes(parameter: &str) -> Option<usize> {
    if let Some((_, length)) = parameter.split_once('[') {
        return length.trim().strip_suffix(']')?.parse().ok();
    }
    // A type may be followed by what it points to: `.u64 .ptr .global .align 8 name`.
    parameter.split_whitespace().find_map(|word| match word {
        ".u64" => Some(0),
        ".u32" | ".s32" | ".b32" | ".f32" => Some(4),
        ".f64" | ".s64" | ".b64" => Some(8),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn parameters_are_read_from_our_own_ptx() {
        let ptx = include_str!("../../../kernels/self_test.f64.ptx");
        assert_eq!(of(ptx, "self_test_product"), Some(vec![8, 0, 0, 0]));
        assert_eq!(of(ptx, "self_test_shuffle"), Some(vec![0]));
        assert_eq!(of(ptx, "self_test"), None);
    }

    #[test]
    fn structs_numbers_and_pointers_differ() {
        let ptx =
            ".entry k(\n\t.param .align 8 .b8 k_param_0[24],\n\t.param .f64 k_param_1,\n\t.param .u64 k_param_2\n)\n";
        assert_eq!(of(ptx, "k"), Some(vec![24, 8, 0]));
        let annotated = ".entry k(\n\t.param .u64 .ptr .global .align 8 k_param_0\n)\n";
        assert_eq!(of(annotated, "k"), Some(vec![0]));
    }
}
