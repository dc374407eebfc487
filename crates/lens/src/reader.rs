//! What is a head used as? Who has to read what it wrote?

use headlight_heads::{HeadName, Reader};
use headlight_residual::{ActivationsError, BlockSite, Decoder, Edits, NoProbe, Site};

use crate::{Behaviour, Input, Joint, Performance, path::Written};

/// The behaviour with what `heads` wrote hidden from each kind of reader in turn: their mean stands
/// in their place for that kind only. Empty for a post-norm model, whose stream is not a sum;
/// without queries, keys and values for heads of the last layer, which no later one reads.
///
/// A feed-forward is a reader too, but not one that is hidden from here: what is lost without the
/// heads altogether ([`ablate`](crate::ablate)) and through none of these may have gone through it.
///
/// # Errors
/// If the heads' results do not fit into memory.
pub fn readers(
    model: &Decoder,
    behaviour: &Behaviour,
    heads: &[HeadName],
) -> Result<Vec<(Reader, Performance)>, ActivationsError> {
    let Some(written) = Written::by(model, behaviour, heads)? else {
        return Ok(Vec::new());
    };
    let mut measured = Vec::new();
    for reader in Reader::ALL {
        if let Some(mut edits) = hidden_from(model, &written, &[reader]) {
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
/// If the heads' results do not fit into memory.
pub fn keys_and_queries(
    model: &Decoder,
    behaviour: &Behaviour,
    heads: &[HeadName],
) -> Result<Option<Joint>, ActivationsError> {
    let Some(written) = Written::by(model, behaviour, heads)? else {
        return Ok(None);
    };
    let rights = |readers: &[Reader]| {
        let mut edits = hidden_from(model, &written, readers)?;
        Some(behaviour.rights(model, &mut edits))
    };
    let untouched = behaviour.rights(model, &mut NoProbe);
    let alone = [Reader::Keys, Reader::Queries].map(|reader| rights(&[reader]));
    let both = rights(&[Reader::Keys, Reader::Queries]);
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

/// The changes that hide from all these readers what was written; none if no reader stands behind
/// the writers.
fn hidden_from(model: &Decoder, written: &Written, readers: &[Reader]) -> Option<Edits> {
    let layers = model.blocks.len();
    let mut edits = None;
    for &reader in readers {
        // Each place with the block before which it stands: what later heads wrote is not in the
        // stream yet.
        let places: Vec<(usize, Site)> = match Input::of(reader) {
            Some(input) => (0..layers)
                .map(|layer| (layer, input.site(layer)))
                .collect(),
            None => vec![(layers, Site::Block(layers - 1, BlockSite::ResidPost))],
        };
        for (before, site) in places {
            if let Some(hide) = written.hidden_before(before) {
                edits = Some(edits.unwrap_or_else(Edits::default).at(site, hide));
            }
        }
    }
    edits
}
