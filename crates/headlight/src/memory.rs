//! Memory that a program has freed.

/// Keeps freed memory for what is allocated next. By default the allocator gives memory back to the
/// system that is unused for 10 ms, and each training step then asks for its pages anew.
#[allow(
    unsafe_code,
    reason = "the allocator's options are set by a C function"
)]
pub fn keep_freed() {
    /// `mi_option_purge_delay`, in milliseconds; below 0: never.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the option is a number; it may be set at any time.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) }
}
