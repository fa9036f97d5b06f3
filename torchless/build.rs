//! Puts the kernels' text together, compares their layout with the fields in Rust, and compiles
//! them for emulation on the host, where the feature `emulated` asks for that.

mod fields {
    use ns_device_build::{constants, numbers};

    include!("src/device/layout_fields.rs");

    pub(crate) fn structs() -> Vec<String> {
        vec![
            ProductLayout(),
            EmbeddingLayout(),
            RowLayout(),
            ElementLayout(),
            GateLayout(),
            RopeLayout(),
            AttentionLayout(),
        ]
    }
}

mod encoder_fields {
    use ns_device_build::{constants, numbers};

    include!("src/encoder/device/layout_fields.rs");

    pub(crate) fn structs() -> Vec<String> {
        vec![
            ElementsLayout(),
            FillLayout(),
            IndicesLayout(),
            GatherLayout(),
            PickLayout(),
            PointsLayout(),
            TriangleLayout(),
            RunningLayout(),
            ScatterLayout(),
            ReduceLayout(),
            SoftmaxLayout(),
            NormLayout(),
            MatricesLayout(),
        ]
    }
}

fn main() {
    ns_device_build::KernelText::new("src/device/layout_fields.rs", &fields::structs(), &fields::numbers())
        .write("transformer");
    let fields = "src/encoder/device/layout_fields.rs";
    ns_device_build::KernelText::new(fields, &encoder_fields::structs(), &encoder_fields::numbers())
        .in_folder("kernels/encoder")
        .write("encoder");
    #[cfg(feature = "emulated")]
    {
        ns_device_build::Emulation::new("kernels/emulated.cpp").compile("torchless_kernels");
        ns_device_build::Emulation::new("kernels/encoder/emulated.cpp").compile("torchless_encoder_kernels");
    }
}
