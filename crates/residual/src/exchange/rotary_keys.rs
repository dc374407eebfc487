//! The keys of `config.json` about rotary positions.

use headlight_attention::RotaryScaling;
use serde_json::{Map, Value, json};

use super::{ExchangeError, keys::Keys};
use crate::RotaryPositions;

/// What one place in the file says.
#[derive(Debug, Clone, Default)]
struct Said {
    base: Option<f64>,
    part: Option<f64>,
    scaling: Option<RotaryScaling>,
}

/// What a family means where its file says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    pub base: f64,
    /// The part of a head that rotates; `None`: all of it, whatever the file says.
    pub part: Option<f64>,
    /// The original context, which counts more than the one beside the scaling; `None`: the file's.
    pub original_n_ctx: Option<usize>,
    /// Where the file has the rotation of all layers.
    pub places: &'static [(&'static str, &'static str)],
}

/// The key of the length of the original context.
pub const ORIGINAL: &str = "original_max_position_embeddings";

/// Of the version of transformers that wrote the file, this is the place or that.
const PLACES: &[(&str, &str)] = &[
    ("rope_parameters", "rope_parameters."),
    ("rope_scaling", "rope_scaling."),
];

impl Defaults {
    pub const LLAMA: Self = Self {
        base: 10_000.0,
        part: None,
        original_n_ctx: None,
        places: PLACES,
    };
}

/// The rotation of all layers, from wherever the version that wrote the file has put it. Places that
/// contradict each other are refused.
pub fn read(
    keys: &mut Keys<'_>,
    defaults: Defaults,
    d_head: usize,
    n_ctx: usize,
) -> Result<RotaryPositions, ExchangeError> {
    let mut said = Said {
        base: keys.number("rope_theta")?,
        part: keys.number("partial_rotary_factor")?,
        scaling: None,
    };
    // As in transformers, it counts more than the one beside the scaling.
    let original = keys.size(ORIGINAL)?.or(defaults.original_n_ctx);
    for &(key, within) in defaults.places {
        if let Some(object) = keys.object(key)? {
            said = said.and(Keys::within(within, object), n_ctx, original)?;
        }
    }
    let part = said.part.or(defaults.part).unwrap_or(1.0);
    let key = "partial_rotary_factor";
    if defaults.part.is_none() && part != 1.0 {
        return Err(keys.refused(key, &json!(part), "must be 1"));
    }
    if part > 1.0 {
        return Err(keys.refused(key, &json!(part), "must be at most 1"));
    }
    Ok(RotaryPositions {
        base: said.base.unwrap_or(defaults.base),
        rotated: (part != 1.0).then_some((d_head as f64 * part) as usize),
        scaling: said.scaling.unwrap_or_default(),
        base_in_window: None,
    })
}

impl Said {
    /// What is said here and in an object of the file.
    fn and(
        self,
        mut rope: Keys<'_>,
        n_ctx: usize,
        original: Option<usize>,
    ) -> Result<Self, ExchangeError> {
        let said = Self::read(&mut rope, n_ctx, original)?;
        rope.check_all_read()?;
        for (key, own, elsewhere) in [
            ("rope_theta", said.base, self.base),
            ("partial_rotary_factor", said.part, self.part),
        ] {
            if let (Some(own), Some(elsewhere)) = (own, elsewhere)
                && own != elsewhere
            {
                let reason = format!("must be what it is elsewhere in the file, {elsewhere}");
                return Err(rope.refused(key, &json!(own), &reason));
            }
        }
        if let (Some(own), Some(elsewhere)) = (&said.scaling, &self.scaling)
            && own != elsewhere
        {
            let reason = "must be what it is elsewhere in the file";
            return Err(rope.refused("rope_type", &json!(name_of(own)), reason));
        }
        Ok(Self {
            base: self.base.or(said.base),
            part: self.part.or(said.part),
            scaling: self.scaling.or(said.scaling),
        })
    }

    fn read(
        rope: &mut Keys<'_>,
        n_ctx: usize,
        original: Option<usize>,
    ) -> Result<Self, ExchangeError> {
        let old = rope.text("type")?;
        let kind = rope.text("rope_type")?.or(old);
        let own = rope.size(ORIGINAL)?;
        let original_n_ctx = original.or(own).unwrap_or(n_ctx);
        let scaling = match kind {
            None => None,
            Some("default") => Some(RotaryScaling::None),
            Some("linear") => Some(RotaryScaling::Linear {
                factor: rope.required_number("factor")?,
            }),
            Some("dynamic") => Some(RotaryScaling::Dynamic {
                factor: rope.required_number("factor")?,
                original_n_ctx: n_ctx,
            }),
            Some("llama3") => Some(RotaryScaling::Llama3 {
                factor: rope.required_number("factor")?,
                low_frequency_factor: rope.required_number("low_freq_factor")?,
                high_frequency_factor: rope.required_number("high_freq_factor")?,
                original_n_ctx,
            }),
            // Phi-3 had other names for it before version 4.44 of transformers.
            Some("longrope" | "su") => Some(read_long_rope(rope, n_ctx, original_n_ctx)?),
            Some("yarn") if rope.has("short_factor") => {
                Some(read_long_rope(rope, n_ctx, original_n_ctx)?)
            }
            Some("yarn") => Some(read_yarn(rope, n_ctx, original_n_ctx)?),
            Some(other) => {
                let reason = "must be one of default, linear, dynamic, llama3, yarn, longrope";
                return Err(rope.refused("rope_type", &json!(other), reason));
            }
        };
        Ok(Self {
            base: rope.number("rope_theta")?,
            part: rope.number("partial_rotary_factor")?,
            scaling,
        })
    }
}

fn read_yarn(
    rope: &mut Keys<'_>,
    n_ctx: usize,
    original_n_ctx: usize,
) -> Result<RotaryScaling, ExchangeError> {
    let longer = n_ctx as f64 / original_n_ctx as f64;
    let factor = rope.number("factor")?.unwrap_or(longer);
    let mscales = [rope.number("mscale")?, rope.number("mscale_all_dim")?];
    let of_mscale = |mscale: f64| 0.1 * mscale * factor.max(1.0).ln() + 1.0;
    let attention_factor = match mscales {
        [Some(above), Some(below)] => Some(of_mscale(above) / of_mscale(below)),
        _ => None,
    };
    // Said of training.
    rope.flag("finetuned", true)?;
    let number = |number: Option<f64>, published: f64| number.unwrap_or(published);
    Ok(RotaryScaling::Yarn {
        factor,
        original_n_ctx,
        fast_turns: number(rope.number("beta_fast")?, RotaryScaling::FAST_TURNS),
        slow_turns: number(rope.number("beta_slow")?, RotaryScaling::SLOW_TURNS),
        whole_pairs: rope.flag("truncate", true)?,
        attention_factor: rope.number("attention_factor")?.or(attention_factor),
    })
}

fn read_long_rope(
    rope: &mut Keys<'_>,
    n_ctx: usize,
    original_n_ctx: usize,
) -> Result<RotaryScaling, ExchangeError> {
    let original = original_n_ctx as f64;
    let factor = rope.number("factor")?.unwrap_or(n_ctx as f64 / original);
    let published = match factor {
        ..=1.0 => 1.0,
        _ => (1.0 + factor.ln() / original.ln()).sqrt(),
    };
    let attention_factor = rope.number("attention_factor")?;
    Ok(RotaryScaling::LongRope {
        short_factors: rope.required_numbers("short_factor")?,
        long_factors: rope.required_numbers("long_factor")?,
        original_n_ctx,
        attention_factor: attention_factor.unwrap_or(published),
    })
}

/// The rotation of the layers of one kind, in an object of its own.
pub fn read_of_kind(
    mut rope: Keys<'_>,
    n_ctx: usize,
) -> Result<(Option<f64>, RotaryScaling), ExchangeError> {
    let said = Said::read(&mut rope, n_ctx, None)?;
    rope.check_all_read()?;
    if let Some(part) = said.part.filter(|&part| part != 1.0) {
        return Err(rope.refused("partial_rotary_factor", &json!(part), "must be 1"));
    }
    Ok((said.base, said.scaling.unwrap_or_default()))
}

/// Adds the keys of a rotation of whole heads: versions of transformers before 5 read `rope_theta`
/// and `rope_scaling`, versions since then `rope_parameters`.
pub fn write(keys: &mut Map<String, Value>, rotary: &RotaryPositions) {
    let rope = of_kind(rotary.base, &rotary.scaling);
    keys.insert("rope_theta".to_owned(), json!(rotary.base));
    if rotary.scaling != RotaryScaling::None {
        keys.insert("rope_scaling".to_owned(), Value::Object(rope.clone()));
    }
    keys.insert("rope_parameters".to_owned(), Value::Object(rope));
}

/// Adds the keys of a rotation of parts of heads. Versions of transformers before 5 read the keys
/// `part`, `base` and `rope_scaling`.
pub fn write_of_part(
    keys: &mut Map<String, Value>,
    rotary: &RotaryPositions,
    d_head: usize,
    [base, part]: [&str; 2],
) {
    write(keys, rotary);
    keys.remove("rope_theta");
    let share = json!(part_of(rotary.rotated.unwrap_or(d_head), d_head));
    for place in ["rope_parameters", "rope_scaling"] {
        if let Some(Value::Object(rope)) = keys.get_mut(place) {
            rope.insert("partial_rotary_factor".to_owned(), share.clone());
        }
    }
    keys.insert(base.to_owned(), json!(rotary.base));
    keys.insert(part.to_owned(), share);
}

/// The object of one rotation.
pub fn of_kind(base: f64, scaling: &RotaryScaling) -> Map<String, Value> {
    let mut rope = Map::new();
    let mut add = |key: &str, value: Value| rope.insert(key.to_owned(), value);
    add("rope_type", json!(name_of(scaling)));
    add("rope_theta", json!(base));
    match scaling {
        RotaryScaling::None => {}
        // Its original context is that of the model.
        RotaryScaling::Linear { factor } | RotaryScaling::Dynamic { factor, .. } => {
            add("factor", json!(factor));
        }
        RotaryScaling::Llama3 {
            factor,
            low_frequency_factor,
            high_frequency_factor,
            original_n_ctx,
        } => {
            add("factor", json!(factor));
            add("low_freq_factor", json!(low_frequency_factor));
            add("high_freq_factor", json!(high_frequency_factor));
            add(ORIGINAL, json!(original_n_ctx));
        }
        RotaryScaling::Yarn {
            factor,
            original_n_ctx,
            fast_turns,
            slow_turns,
            whole_pairs,
            attention_factor,
        } => {
            add("factor", json!(factor));
            add(ORIGINAL, json!(original_n_ctx));
            add("beta_fast", json!(fast_turns));
            add("beta_slow", json!(slow_turns));
            add("truncate", json!(whole_pairs));
            if let Some(attention_factor) = attention_factor {
                add("attention_factor", json!(attention_factor));
            }
        }
        RotaryScaling::LongRope {
            short_factors,
            long_factors,
            original_n_ctx,
            attention_factor,
        } => {
            add("short_factor", json!(short_factors));
            add("long_factor", json!(long_factors));
            add(ORIGINAL, json!(original_n_ctx));
            add("attention_factor", json!(attention_factor));
        }
    }
    rope
}

fn name_of(scaling: &RotaryScaling) -> &'static str {
    match scaling {
        RotaryScaling::None => "default",
        RotaryScaling::Linear { .. } => "linear",
        RotaryScaling::Dynamic { .. } => "dynamic",
        RotaryScaling::Llama3 { .. } => "llama3",
        RotaryScaling::Yarn { .. } => "yarn",
        RotaryScaling::LongRope { .. } => "longrope",
    }
}

/// The share of a head that rotates. Its product with the width, cut to a whole number, is `rotated`
/// again.
fn part_of(rotated: usize, d_head: usize) -> f64 {
    let part = rotated as f64 / d_head as f64;
    if (d_head as f64 * part) as usize == rotated {
        part
    } else {
        part.next_up()
    }
}
