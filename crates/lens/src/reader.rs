//! What is a head used as? Who has to read what it wrote?

use headlight_heads::{HeadName, Reader};
use headlight_residual::{ActivationsError, BlockSite, Decoder, Edits, Site};

use crate::{Behaviour, Input, Performance, path::Written};

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
    // Each place with the block before which it stands: what later heads wrote is not in the stream
    // yet.
    let layers = model.blocks.len();
    let places = |reader| -> Vec<(usize, Site)> {
        match Input::of(reader) {
            Some(input) => (0..layers)
                .map(|layer| (layer, input.site(layer)))
                .collect(),
            None => vec![(layers, Site::Block(layers - 1, BlockSite::ResidPost))],
        }
    };
    let hidden = |reader| {
        let hide = |(before, site)| Some((site, written.hidden_before(before)?));
        let edits: Vec<_> = places(reader).into_iter().filter_map(hide).collect();
        let put = |edits: Edits, (site, edit)| edits.at(site, edit);
        (!edits.is_empty()).then(|| {
            (
                reader,
                behaviour.measure(model, &mut edits.into_iter().fold(Edits::default(), put)),
            )
        })
    };
    Ok(Reader::ALL.into_iter().filter_map(hidden).collect())
}
