//! How the numbers of a tensor are stored in a file.

use super::blocks;
use crate::tensor_file::Float;

/// The type of a stored tensor: a float, or blocks of small integers that share scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorType {
    Float(Float),
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Iq4Nl,
    Iq4Xs,
    Mxfp4,
}

impl TensorType {
    /// The type with this number in a GGUF file (`enum ggml_type` of ggml.h).
    ///
    /// # Errors
    /// Names the type if it cannot be read here.
    pub fn of_ggml(number: u32) -> Result<Self, String> {
        Ok(match number {
            0 => Self::Float(Float::F32),
            1 => Self::Float(Float::F16),
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            20 => Self::Iq4Nl,
            23 => Self::Iq4Xs,
            30 => Self::Float(Float::Bf16),
            39 => Self::Mxfp4,
            _ => return Err(name_of_unread(number)),
        })
    }

    /// The numbers of a block, and the bytes that it takes.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::Float(Float::F32) => (1, 4),
            Self::Float(Float::F16 | Float::Bf16) => (1, 2),
            Self::Q4_0 => (32, blocks::Q4_0),
            Self::Q4_1 => (32, blocks::Q4_1),
            Self::Q5_0 => (32, blocks::Q5_0),
            Self::Q5_1 => (32, blocks::Q5_1),
            Self::Q8_0 => (32, blocks::Q8_0),
            Self::Q2K => (256, blocks::Q2_K),
            Self::Q3K => (256, blocks::Q3_K),
            Self::Q4K => (256, blocks::Q4_K),
            Self::Q5K => (256, blocks::Q5_K),
            Self::Q6K => (256, blocks::Q6_K),
            Self::Iq4Nl => (32, blocks::IQ4_NL),
            Self::Iq4Xs => (256, blocks::IQ4_XS),
            Self::Mxfp4 => (32, blocks::MXFP4),
        }
    }

    /// The numbers in f32. `bytes` has whole blocks.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Self::Float(float) => float.decode(bytes),
            Self::Q4_0 => each_block(bytes, blocks::q4_0),
            Self::Q4_1 => each_block(bytes, blocks::q4_1),
            Self::Q5_0 => each_block(bytes, blocks::q5_0),
            Self::Q5_1 => each_block(bytes, blocks::q5_1),
            Self::Q8_0 => each_block(bytes, blocks::q8_0),
            Self::Q2K => each_block(bytes, blocks::q2_k),
            Self::Q3K => each_block(bytes, blocks::q3_k),
            Self::Q4K => each_block(bytes, blocks::q4_k),
            Self::Q5K => each_block(bytes, blocks::q5_k),
            Self::Q6K => each_block(bytes, blocks::q6_k),
            Self::Iq4Nl => each_block(bytes, blocks::iq4_nl),
            Self::Iq4Xs => each_block(bytes, blocks::iq4_xs),
            Self::Mxfp4 => each_block(bytes, blocks::mxfp4),
        }
    }
}

fn each_block<const BYTES: usize, const WEIGHTS: usize>(
    bytes: &[u8],
    decode: fn(&[u8; BYTES], &mut [f32; WEIGHTS]),
) -> Vec<f32> {
    let (blocks, _) = bytes.as_chunks();
    let mut weights = vec![0.0; blocks.len() * WEIGHTS];
    let (decoded, _) = weights.as_chunks_mut();
    for (block, weights) in blocks.iter().zip(decoded) {
        decode(block, weights);
    }
    weights
}

/// The names of the other types of ggml.h, for messages.
fn name_of_unread(number: u32) -> String {
    let name = match number {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        21 => "IQ3_S",
        22 => "IQ2_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        40 => "NVFP4",
        _ => return format!("number {number}"),
    };
    name.to_owned()
}
