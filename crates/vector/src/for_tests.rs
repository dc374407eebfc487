//! Tests run on every kind of processor that this one can stand in for.

use pulp::Simd;

use crate::Kernel;

struct Call<K>(K);

impl<K: Kernel> pulp::WithSimd for Call<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> K::Output {
        self.0.run(simd)
    }
}

/// Runs the kernel compiled for each kind of processor.
pub fn on_every_processor<K: Kernel<Output = ()> + Copy>(kernel: K) {
    Simd::vectorize(pulp::Scalar::new(), Call(kernel));
    #[cfg(target_arch = "x86_64")]
    {
        use pulp::x86::{V3, V4};
        if let Some(simd) = V3::try_new() {
            Simd::vectorize(simd, Call(kernel));
        }
        if let Some(simd) = V4::try_new() {
            Simd::vectorize(simd, Call(kernel));
        }
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(simd) = pulp::aarch64::Neon::try_new() {
        Simd::vectorize(simd, Call(kernel));
    }
}
