//! The live explorer's page.

use headlight_run::InputError;

use crate::{
    ExplorerFacts,
    page::{Page, escaped_html, module},
};

/// The page as one HTML file; its answers come from where it came from.
pub(crate) fn explorer_page(facts: &ExplorerFacts) -> Result<String, InputError> {
    Page {
        title: &format!("{}: live", facts.name),
        modules: &[
            module!("walk_source.js"),
            module!("explorer_asks.js"),
            module!("explorer_changes.js"),
            module!("explorer.js"),
        ],
        data: facts,
        without_script: &format!(
            "<p>The live explorer of {} needs JavaScript.</p>",
            escaped_html(&facts.name)
        ),
    }
    .html()
}
