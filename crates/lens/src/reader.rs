//! What is a head used as? Who has to read what it wrote?

use headlight_heads::{HeadName, Reader};
use headlight_residual::{ActivationsError, NoProbe, Probed, Site};

use crate::{Behaviour, Input, Joint, Performance, given::last_stream, path::Written};

/// The behaviour with what `heads` wrote hidden from each kind of reader in turn: their mean stands
/// in their place for that kind only. Empty for a post-norm model, whose stream is not a sum;
/// without queries, keys and values for heads of the last layer, which no later one reads.
///
/// A feed-forward is a reader too, but not one that is hidden from here: what is lost without the
/// heads altogether ([`ablate`](crate::ablate)) and through none of these may have gone through it.
///
/// # Errors
/// If the model lacks the results of the heads or an input that reads them, does not give its stream
/// sites, or the results do not fit into memory.
pub fn readers(
    model: &dyn Probed,
    behaviour: &Behaviour,
    heads: &[HeadName],
) -> Result<Vec<(Reader, Performance)>, ActivationsError> {
    if !is_a_sum(model)? {
        return Ok(Vec::new());
    }
    let written = Written::by(model, behaviour, heads)?;
    let mut measured = Vec::new();
    for reader in Reader::ALL {
        if let Some(mut edits) = written.hidden_at(model, &places(model, reader)?)? {
            measured.push((reader, behaviour.measure(model, &mut edits)));
        }
    }
    Ok(measured)
}

/// What is lost with the output of `heads` hidden from keys, from queries, and from both. None for
/// a post-norm model, and for heads of the last layer.
///
/// Two readers that can replace each other lose little alone and much together. The interaction of
/// keys and queries is what tests of one reader at a time miss.
///
/// # Errors
/// As [`readers`].
pub fn keys_and_queries(
    model: &dyn Probed,
    behaviour: &Behaviour,
    heads: &[HeadName],
) -> Result<Option<Joint>, ActivationsError> {
    if !is_a_sum(model)? {
        return Ok(None);
    }
    let written = Written::by(model, behaviour, heads)?;
    let [keys, queries] = [
        places(model, Reader::Keys)?,
        places(model, Reader::Queries)?,
    ];
    let rights = |sites: &[Site]| {
        let edits = written.hidden_at(model, sites)?;
        Ok(edits.map(|mut edits| behaviour.rights(model, &mut edits)))
    };
    let untouched = behaviour.rights(model, &mut NoProbe);
    let (alone, both) = (
        [rights(&keys)?, rights(&queries)?],
        rights(&[keys, queries].concat())?,
    );
    let ([Some(keys), Some(queries)], Some(both)) = (alone, both) else {
        return Ok(None);
    };
    Ok(Some(Joint::of(
        behaviour,
        &untouched,
        [&keys, &queries],
        &both,
    )))
}

/// Whether the last stream of the model is a sum.
fn is_a_sum(model: &dyn Probed) -> Result<bool, ActivationsError> {
    Ok(model.summands(last_stream(model)?).is_some())
}

/// Where a kind of reader reads the stream.
fn places(model: &dyn Probed, reader: Reader) -> Result<Vec<Site>, ActivationsError> {
    match Input::of(reader) {
        Some(input) => {
            let layers = 0..model.sizes().layers.len();
            Ok(layers.map(|layer| input.site(layer)).collect())
        }
        None => Ok(vec![last_stream(model)?]),
    }
}
