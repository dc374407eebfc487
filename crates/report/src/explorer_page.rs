//! The live explorer's page.

use headlight_run::Error;
use maud::html;

use crate::{
    ExplorerFacts,
    page::{Page, Visible, module},
};

/// The page's own modules.
pub(crate) const MODULES: [(&str, &str); 11] = [
    module!("walk_source.js"),
    module!("explorer_asks.js"),
    module!("explorer_predictions.js"),
    module!("explorer_heads.js"),
    module!("explorer_patterns.js"),
    module!("explorer_patches.js"),
    module!("explorer_sweep.js"),
    module!("explorer_why.js"),
    module!("explorer_circuit.js"),
    module!("explorer_writing.js"),
    module!("explorer.js"),
];

/// The page as one HTML file; its answers come from where it came from.
pub(crate) fn explorer_page(facts: &ExplorerFacts) -> Result<String, Error> {
    Page {
        title: &format!("{}: live", facts.name),
        modules: &MODULES,
        data: facts,
        without_script: html! {
            p { "The live explorer of " (Visible(&facts.name)) " needs JavaScript." }
        },
    }
    .html()
}
