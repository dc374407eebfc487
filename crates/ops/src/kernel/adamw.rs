//! AdamW in one pass.

use burn::backend::{Backend, Flex, backend_extension, flex::FlexTensor, tensor::FloatTensor};
use headlight_vector::{Kernel, Simd, vectorised};
use rayon::prelude::*;

use super::{CHUNK, contiguous, numbers, own};
use crate::AdamWStep;

/// The update as one operation, without a gradient.
#[backend_extension(Flex)]
pub(crate) trait FusedAdamW: Backend {
    fn fused_adamw(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        m: FloatTensor<Self>,
        v: FloatTensor<Self>,
        step: AdamWStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl FusedAdamW for Flex {
    fn fused_adamw(
        parameter: FlexTensor,
        gradient: FlexTensor,
        m: FlexTensor,
        v: FlexTensor,
        step: AdamWStep,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let gradient = contiguous(gradient);
        let (mut parameter, mut m, mut v) = (own(parameter), own(m), own(v));
        let chunks = parameter
            .storage_mut::<f32>()
            .par_chunks_mut(CHUNK)
            .zip(m.storage_mut::<f32>().par_chunks_mut(CHUNK))
            .zip(v.storage_mut::<f32>().par_chunks_mut(CHUNK))
            .zip(numbers(&gradient).par_chunks(CHUNK));
        chunks.for_each(|(((parameter, m), v), gradient)| {
            vectorised(Update {
                parameter,
                m,
                v,
                gradient,
                step,
            });
        });
        (parameter, m, v)
    }
}

struct Update<'a> {
    parameter: &'a mut [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
    gradient: &'a [f32],
    step: AdamWStep,
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let AdamWStep {
            learning_rate,
            gradient_scale,
            beta_1,
            beta_2,
            epsilon,
            weight_decay,
            time,
        } = self.step;
        let (keep_m, keep_v) = (beta_1 as f32, beta_2 as f32);
        let (new_m, new_v) = ((1.0 - beta_1) as f32, (1.0 - beta_2) as f32);
        let correct_v = (1.0 / (1.0 - beta_2.powi(time))) as f32;
        let rate = (learning_rate / (1.0 - beta_1.powi(time))) as f32;
        let scale = gradient_scale as f32;
        let (shrink, epsilon) = ((1.0 - learning_rate * weight_decay) as f32, epsilon as f32);
        let moments = self.m.iter_mut().zip(self.v);
        for ((parameter, (m, v)), &g) in self.parameter.iter_mut().zip(moments).zip(self.gradient) {
            let g = scale * g;
            *m = keep_m * *m + new_m * g;
            *v = keep_v * *v + new_v * g * g;
            *parameter = shrink * *parameter - rate * *m / ((correct_v * *v).sqrt() + epsilon);
        }
    }
}
