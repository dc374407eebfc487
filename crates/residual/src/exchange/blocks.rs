//! Blocks of weights that share scales, as ggml stores them.
//!
//! A weight is `d·q − m`: `q` is an integer of 2 to 8 bits, `d` a scale and `m` a minimum. The types
//! `Q4_0` to `Q8_0` have one `d` (and one `m`) in f16 for 32 weights. The types `_K` have blocks of
//! 256 weights in groups of 16 or 32: each group has its own small integers for `d` and `m`, which
//! two numbers in f16 scale once more. In the types `IQ4` and `MXFP4` the integer is the number of an
//! entry in a table.
//!
//! Sources: `ggml-common.h` for the layouts; the Python package `gguf` 0.19 for the order of the
//! products, whose bits these functions give.

use half::f16;

/// The bytes of a block of each type.
pub const Q4_0: usize = 2 + 16;
pub const Q4_1: usize = 2 + 2 + 16;
pub const Q5_0: usize = 2 + 4 + 16;
pub const Q5_1: usize = 2 + 2 + 4 + 16;
pub const Q8_0: usize = 2 + 32;
pub const Q2_K: usize = 16 + 64 + 2 + 2;
pub const Q3_K: usize = 32 + 64 + 12 + 2;
pub const Q4_K: usize = 2 + 2 + 12 + 128;
pub const Q5_K: usize = 2 + 2 + 12 + 32 + 128;
pub const Q6_K: usize = 128 + 64 + 16 + 2;
pub const IQ4_NL: usize = 2 + 16;
pub const IQ4_XS: usize = 2 + 2 + 4 + 128;
pub const MXFP4: usize = 1 + 16;

/// The table of the types `IQ4`.
const IQ4_VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];
/// Floats of four bits (OCP Microscaling Formats 1.0, E2M1), times 2.
const E2M1_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// `d·(q − 8)`; byte `i` holds weight `i` in its low half and weight `i + 16` in its high half.
pub fn q4_0(block: &[u8; Q4_0], weights: &mut [f32; 32]) {
    let (scale, quants) = block.split_at(2);
    let d = half(scale);
    for (i, &byte) in quants.iter().enumerate() {
        weights[i] = d * (f32::from(low(byte)) - 8.0);
        weights[i + 16] = d * (f32::from(high(byte)) - 8.0);
    }
}

/// `d·q + m`
pub fn q4_1(block: &[u8; Q4_1], weights: &mut [f32; 32]) {
    let (scales, quants) = block.split_at(4);
    let (d, m) = (half(&scales[..2]), half(&scales[2..]));
    for (i, &byte) in quants.iter().enumerate() {
        weights[i] = d * f32::from(low(byte)) + m;
        weights[i + 16] = d * f32::from(high(byte)) + m;
    }
}

/// `d·(q − 16)`; the fifth bit of weight `i` is bit `i` of `fifth`.
pub fn q5_0(block: &[u8; Q5_0], weights: &mut [f32; 32]) {
    let (scale, rest) = block.split_at(2);
    let (fifth, quants) = rest.split_at(4);
    let d = half(scale);
    for (i, &byte) in quants.iter().enumerate() {
        let first = low(byte) | bit(fifth, i) << 4;
        let second = high(byte) | bit(fifth, i + 16) << 4;
        weights[i] = d * (f32::from(first) - 16.0);
        weights[i + 16] = d * (f32::from(second) - 16.0);
    }
}

/// `d·q + m` with five bits
pub fn q5_1(block: &[u8; Q5_1], weights: &mut [f32; 32]) {
    let (scales, rest) = block.split_at(4);
    let (fifth, quants) = rest.split_at(4);
    let (d, m) = (half(&scales[..2]), half(&scales[2..]));
    for (i, &byte) in quants.iter().enumerate() {
        let first = low(byte) | bit(fifth, i) << 4;
        let second = high(byte) | bit(fifth, i + 16) << 4;
        weights[i] = d * f32::from(first) + m;
        weights[i + 16] = d * f32::from(second) + m;
    }
}

/// `d·q` with whole bytes
pub fn q8_0(block: &[u8; Q8_0], weights: &mut [f32; 32]) {
    let (scale, quants) = block.split_at(2);
    let d = half(scale);
    for (weight, &byte) in weights.iter_mut().zip(quants) {
        *weight = d * f32::from(byte.cast_signed());
    }
}

/// 16 groups of 16 weights of two bits: `(d·a)·q − (e·b)`, where a byte of a group has `a` in its
/// low half and `b` in its high half.
pub fn q2_k(block: &[u8; Q2_K], weights: &mut [f32; 256]) {
    let (groups, rest) = block.split_at(16);
    let (quants, scales) = rest.split_at(64);
    let (d, e) = (half(&scales[..2]), half(&scales[2..]));
    for (i, weight) in weights.iter_mut().enumerate() {
        let group = groups[i / 16];
        let scale = d * f32::from(low(group));
        let minimum = e * f32::from(high(group));
        *weight = scale * f32::from(two_bits(quants, i)) - minimum;
    }
}

/// 16 groups of 16 weights of three bits: `(d·(a − 32))·(q − 4)`. The third bits of all weights are
/// in 32 bytes, and the scales of six bits in 12.
pub fn q3_k(block: &[u8; Q3_K], weights: &mut [f32; 256]) {
    let (third, rest) = block.split_at(32);
    let (quants, rest) = rest.split_at(64);
    let (groups, scale) = rest.split_at(12);
    let d = half(scale);
    for (i, weight) in weights.iter_mut().enumerate() {
        let group = i / 16;
        let low_bits = groups[group % 8] >> (4 * (group / 8)) & 15;
        let high_bits = groups[8 + group % 4] >> (2 * (group / 4)) & 3;
        let scale = d * (f32::from(low_bits | high_bits << 4) - 32.0);
        let quant = two_bits(quants, i) | bit_in_rows(third, i) << 2;
        *weight = scale * (f32::from(quant) - 4.0);
    }
}

/// 8 groups of 32 weights of four bits: `(d·a)·q − (e·b)`
pub fn q4_k(block: &[u8; Q4_K], weights: &mut [f32; 256]) {
    let (scales, rest) = block.split_at(4);
    let (groups, quants) = rest.split_at(12);
    let (d, e) = (half(&scales[..2]), half(&scales[2..]));
    for (i, weight) in weights.iter_mut().enumerate() {
        let (a, b) = six_bits(groups, i / 32);
        let quant = four_bits(quants, i, 32);
        *weight = (d * f32::from(a)) * f32::from(quant) - e * f32::from(b);
    }
}

/// 8 groups of 32 weights of five bits: `(d·a)·q − (e·b)`
pub fn q5_k(block: &[u8; Q5_K], weights: &mut [f32; 256]) {
    let (scales, rest) = block.split_at(4);
    let (groups, rest) = rest.split_at(12);
    let (fifth, quants) = rest.split_at(32);
    let (d, e) = (half(&scales[..2]), half(&scales[2..]));
    for (i, weight) in weights.iter_mut().enumerate() {
        let (a, b) = six_bits(groups, i / 32);
        let quant = four_bits(quants, i, 32) | bit_in_rows(fifth, i) << 4;
        *weight = (d * f32::from(a)) * f32::from(quant) - e * f32::from(b);
    }
}

/// 16 groups of 16 weights of six bits: `(d·a)·(q − 32)`, `a` in eight bits with a sign
pub fn q6_k(block: &[u8; Q6_K], weights: &mut [f32; 256]) {
    let (quants, rest) = block.split_at(128);
    let (high_bits, rest) = rest.split_at(64);
    let (groups, scale) = rest.split_at(16);
    let d = half(scale);
    for (i, weight) in weights.iter_mut().enumerate() {
        let quant = four_bits(quants, i, 64) | two_bits(high_bits, i) << 4;
        let scale = d * f32::from(groups[i / 16].cast_signed());
        *weight = scale * (f32::from(quant) - 32.0);
    }
}

/// `d·t[q]`; byte `i` holds weight `i` in its low half and weight `i + 16` in its high half.
pub fn iq4_nl(block: &[u8; IQ4_NL], weights: &mut [f32; 32]) {
    let (scale, quants) = block.split_at(2);
    by_table(half(scale), &IQ4_VALUES, quants, weights);
}

/// 8 groups of 32 weights as in [`iq4_nl`], of the scale `d·(a − 32)`. `a` has six bits: four in the
/// halves of 4 bytes, and the two highest in a number of 16 bits.
pub fn iq4_xs(block: &[u8; IQ4_XS], weights: &mut [f32; 256]) {
    let (scale, rest) = block.split_at(2);
    let (high_bits, rest) = rest.split_at(2);
    let (low_bits, quants) = rest.split_at(4);
    let (d, high_bits) = (
        half(scale),
        u16::from_le_bytes([high_bits[0], high_bits[1]]),
    );
    let (groups, _) = weights.as_chunks_mut();
    for (group, (weights, quants)) in groups.iter_mut().zip(quants.chunks(16)).enumerate() {
        let below = low_bits[group / 2] >> (4 * (group % 2)) & 15;
        let above = (high_bits >> (2 * group) & 3) as u8;
        let scale = d * (f32::from(below | above << 4) - 32.0);
        by_table(scale, &IQ4_VALUES, quants, weights);
    }
}

/// `2^(e − 128)·t[q]` with one exponent for all, as the table has doubles.
pub fn mxfp4(block: &[u8; MXFP4], weights: &mut [f32; 32]) {
    let (exponent, quants) = block.split_at(1);
    let bits = match u32::from(exponent[0]) {
        // Below the least exponent of a normal f32.
        exponent @ 0..2 => 0x0020_0000 << exponent,
        exponent => (exponent - 1) << 23,
    };
    by_table(f32::from_bits(bits), &E2M1_VALUES, quants, weights);
}

fn by_table(scale: f32, values: &[i8; 16], quants: &[u8], weights: &mut [f32; 32]) {
    for (i, &byte) in quants.iter().enumerate() {
        weights[i] = scale * f32::from(values[usize::from(low(byte))]);
        weights[i + 16] = scale * f32::from(values[usize::from(high(byte))]);
    }
}

fn half(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

fn low(byte: u8) -> u8 {
    byte & 15
}

fn high(byte: u8) -> u8 {
    byte >> 4
}

/// Bit `i` of a number with its lowest byte first.
fn bit(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 8] >> (i % 8) & 1
}

/// 32 bytes hold one bit of 256 weights: bit `r` of byte `c` belongs to weight `32·r + c`.
fn bit_in_rows(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 32] >> (i / 32) & 1
}

/// 32 bytes hold two bits of 128 weights: bits `2r` and `2r + 1` of byte `c` belong to weight
/// `32·r + c`.
fn two_bits(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3
}

/// `row` bytes hold four bits of `2·row` weights, the low halves first.
fn four_bits(bytes: &[u8], i: usize, row: usize) -> u8 {
    bytes[i / (2 * row) * row + i % row] >> (4 * (i / row % 2)) & 15
}

/// Scale and minimum of six bits of one of 8 groups. The first four groups have theirs in the low
/// bits of bytes 0 to 7; the other four have four bits of each in bytes 8 to 11, and the two highest
/// in the high bits of bytes 0 to 7.
fn six_bits(bytes: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        return (bytes[group] & 63, bytes[group + 4] & 63);
    }
    let both = bytes[group + 4];
    let scale = low(both) | bytes[group - 4] >> 6 << 4;
    let minimum = high(both) | bytes[group] >> 6 << 4;
    (scale, minimum)
}
