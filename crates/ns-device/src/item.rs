//! The types of items in buffers, and their bytes.

mod sealed {
    /// Types without padding whose every bit pattern is a value.
    pub trait PlainNumber: Copy + Send + Sync + 'static {}
}

/// An item of a buffer: `u8`, `i8`, `u16`, `u32`, `i32`, `f32` or `f64`.
pub trait BufferItem: sealed::PlainNumber + Default + std::fmt::Debug + PartialEq {}

macro_rules! items {
    ($($item:ty),*) => { $(
        impl sealed::PlainNumber for $item {}
        impl BufferItem for $item {}
    )* };
}
items!(u8, i8, u16, u32, i32, f32, f64);

/// Returns the bytes of items.
#[expect(unsafe_code, reason = "memory of plain numbers is read as bytes")]
pub(crate) fn bytes_of<T: BufferItem>(items: &[T]) -> &[u8] {
    // SAFETY: `BufferItem` is sealed over numbers, which have no padding; the length is the slice's
    // in bytes.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// Returns the bytes of items, for writing.
#[expect(unsafe_code, reason = "memory of plain numbers is written as bytes")]
pub(crate) fn bytes_of_mut<T: BufferItem>(items: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; every bit pattern is a value of each number type.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), size_of_val(items)) }
}
