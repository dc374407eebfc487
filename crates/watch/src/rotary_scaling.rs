//! The scaling of rotary angles in a configuration, which knows no Burn, and in attention.

use headlight_attention::RotaryScaling;
use headlight_run as run;

/// What a configuration says.
pub fn of_attention(scaling: Option<&run::RotaryScaling>) -> RotaryScaling {
    match scaling {
        None => RotaryScaling::None,
        Some(&run::RotaryScaling::Linear { factor }) => RotaryScaling::Linear { factor },
        Some(&run::RotaryScaling::Dynamic {
            factor,
            original_n_ctx,
        }) => RotaryScaling::Dynamic {
            factor,
            original_n_ctx,
        },
        Some(&run::RotaryScaling::Llama3 {
            factor,
            low_frequency_factor,
            high_frequency_factor,
            original_n_ctx,
        }) => RotaryScaling::Llama3 {
            factor,
            low_frequency_factor,
            high_frequency_factor,
            original_n_ctx,
        },
        Some(&run::RotaryScaling::Yarn {
            factor,
            original_n_ctx,
            fast_turns,
            slow_turns,
            whole_pairs,
            attention_factor,
        }) => RotaryScaling::Yarn {
            factor,
            original_n_ctx,
            fast_turns,
            slow_turns,
            whole_pairs,
            attention_factor,
        },
        Some(run::RotaryScaling::LongRope {
            short_factors,
            long_factors,
            original_n_ctx,
            attention_factor,
        }) => RotaryScaling::LongRope {
            short_factors: short_factors.clone(),
            long_factors: long_factors.clone(),
            original_n_ctx: *original_n_ctx,
            attention_factor: *attention_factor,
        },
    }
}

/// What a configuration says of this scaling.
pub fn of_run(scaling: &RotaryScaling) -> Option<run::RotaryScaling> {
    match scaling {
        RotaryScaling::None => None,
        &RotaryScaling::Linear { factor } => Some(run::RotaryScaling::Linear { factor }),
        &RotaryScaling::Dynamic {
            factor,
            original_n_ctx,
        } => Some(run::RotaryScaling::Dynamic {
            factor,
            original_n_ctx,
        }),
        &RotaryScaling::Llama3 {
            factor,
            low_frequency_factor,
            high_frequency_factor,
            original_n_ctx,
        } => Some(run::RotaryScaling::Llama3 {
            factor,
            low_frequency_factor,
            high_frequency_factor,
            original_n_ctx,
        }),
        &RotaryScaling::Yarn {
            factor,
            original_n_ctx,
            fast_turns,
            slow_turns,
            whole_pairs,
            attention_factor,
        } => Some(run::RotaryScaling::Yarn {
            factor,
            original_n_ctx,
            fast_turns,
            slow_turns,
            whole_pairs,
            attention_factor,
        }),
        RotaryScaling::LongRope {
            short_factors,
            long_factors,
            original_n_ctx,
            attention_factor,
        } => Some(run::RotaryScaling::LongRope {
            short_factors: short_factors.clone(),
            long_factors: long_factors.clone(),
            original_n_ctx: *original_n_ctx,
            attention_factor: *attention_factor,
        }),
    }
}
