//! The keys of `config.json` about rotary positions.

use headlight_attention::RotaryScaling;
use serde_json::{Map, Value, json};

use super::{ExchangeError, keys::Keys};
use crate::RotaryPositions;

/// What one place in the file says.
#[derive(Debug, Clone, Copy, Default)]
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
    /// Where the file has the rotation of all layers.
    pub places: &'static [(&'static str, &'static str)],
}

/// Of the version of transformers that wrote the file, this is the place or that.
const PLACES: &[(&str, &str)] = &[
    ("rope_parameters", "rope_parameters."),
    ("rope_scaling", "rope_scaling."),
];

impl Defaults {
    pub const LLAMA: Self = Self {
        base: 10_000.0,
        part: None,
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
    for &(key, within) in defaults.places {
        if let Some(object) = keys.object(key)? {
            said = said.and(Keys::within(within, object), n_ctx)?;
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
    fn and(self, mut rope: Keys<'_>, n_ctx: usize) -> Result<Self, ExchangeError> {
        let said = Self::read(&mut rope, n_ctx)?;
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
        if let (Some(own), Some(elsewhere)) = (said.scaling, self.scaling)
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

    fn read(rope: &mut Keys<'_>, n_ctx: usize) -> Result<Self, ExchangeError> {
        let old = rope.text("type")?;
        let kind = rope.text("rope_type")?.or(old);
        let scaling = match kind {
            None => None,
            Some("default") => Some(RotaryScaling::None),
            Some("linear") => Some(RotaryScaling::Linear {
                factor: rope.required_number("factor")?,
            }),
            Some("llama3") => Some(RotaryScaling::Llama3 {
                factor: rope.required_number("factor")?,
                low_frequency_factor: rope.required_number("low_freq_factor")?,
                high_frequency_factor: rope.required_number("high_freq_factor")?,
                original_n_ctx: rope
                    .size("original_max_position_embeddings")?
                    .unwrap_or(n_ctx),
            }),
            Some(other) => {
                let reason = "must be default, linear or llama3";
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

/// The rotation of the layers of one kind, in an object of its own.
pub fn read_of_kind(
    mut rope: Keys<'_>,
    n_ctx: usize,
) -> Result<(Option<f64>, RotaryScaling), ExchangeError> {
    let said = Said::read(&mut rope, n_ctx)?;
    rope.check_all_read()?;
    if let Some(part) = said.part.filter(|&part| part != 1.0) {
        return Err(rope.refused("partial_rotary_factor", &json!(part), "must be 1"));
    }
    Ok((said.base, said.scaling.unwrap_or_default()))
}

/// Adds the keys of a rotation of whole heads: versions of transformers before 5 read `rope_theta`
/// and `rope_scaling`, versions since then `rope_parameters`.
pub fn write(keys: &mut Map<String, Value>, rotary: &RotaryPositions) {
    let rope = of_kind(rotary.base, rotary.scaling);
    keys.insert("rope_theta".to_owned(), json!(rotary.base));
    if rotary.scaling != RotaryScaling::None {
        keys.insert("rope_scaling".to_owned(), Value::Object(rope.clone()));
    }
    keys.insert("rope_parameters".to_owned(), Value::Object(rope));
}

/// Adds the keys of a rotation of parts of heads, whose angles are not scaled. Versions of
/// transformers before 5 read the keys `part` and `base`.
pub fn write_of_part(
    keys: &mut Map<String, Value>,
    rotary: &RotaryPositions,
    d_head: usize,
    [base, part]: [&str; 2],
) {
    let mut rope = of_kind(rotary.base, RotaryScaling::None);
    let share = json!(part_of(rotary.rotated.unwrap_or(d_head), d_head));
    rope.insert("partial_rotary_factor".to_owned(), share.clone());
    keys.insert("rope_parameters".to_owned(), Value::Object(rope));
    keys.insert(base.to_owned(), json!(rotary.base));
    keys.insert(part.to_owned(), share);
}

/// The object of one rotation.
pub fn of_kind(base: f64, scaling: RotaryScaling) -> Map<String, Value> {
    let mut rope = Map::new();
    let mut add = |key: &str, value: Value| rope.insert(key.to_owned(), value);
    add("rope_type", json!(name_of(scaling)));
    add("rope_theta", json!(base));
    match scaling {
        RotaryScaling::None => {}
        RotaryScaling::Linear { factor } => {
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
            add("original_max_position_embeddings", json!(original_n_ctx));
        }
    }
    rope
}

fn name_of(scaling: RotaryScaling) -> &'static str {
    match scaling {
        RotaryScaling::None => "default",
        RotaryScaling::Linear { .. } => "linear",
        RotaryScaling::Llama3 { .. } => "llama3",
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
