//! One HTML file that needs nothing else: styles, scripts and data are in it.

use std::fmt::Write as _;

use headlight_run::{ErrorKind, InputError};
use serde::Serialize;

use crate::colour::COLOURS;

/// A file of `assets/` and its name.
macro_rules! module {
    ($name:literal) => {
        ($name, include_str!(concat!("../assets/", $name)))
    };
}
pub(crate) use module;

/// Modules that any page may use, each after those it imports.
const COMPONENTS: [(&str, &str); 12] = [
    module!("elements.js"),
    module!("colour.js"),
    module!("theme.js"),
    module!("may_attend.js"),
    module!("grid.js"),
    module!("heatmap.js"),
    module!("data_table.js"),
    module!("dot_product.js"),
    module!("matrix.js"),
    module!("curves.js"),
    module!("walk_stages.js"),
    module!("walk.js"),
];

/// What a page is allowed to do: run what is in it, and ask nobody but the server it came from, if
/// it came from one.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'";

/// A page that draws `data` with its own modules and with those every page has.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a, T> {
    /// Names the window.
    pub title: &'a str,
    /// The page's own modules, names and texts, each after those it imports. They may import the
    /// modules of `assets/`.
    pub modules: &'a [(&'a str, &'a str)],
    /// Found by the modules as `pageData`.
    pub data: &'a T,
    /// HTML for readers without JavaScript, its texts [escaped](crate::escaped_html).
    pub without_script: &'a str,
}

impl<T: Serialize> Page<'_, T> {
    /// The file.
    ///
    /// # Errors
    /// If `data` has no JSON form.
    pub fn html(&self) -> Result<String, InputError> {
        let json = serde_json::to_string(self.data)
            .map_err(|error| InputError::because(ErrorKind::Internal, self.title, error))?;
        let modules = COMPONENTS
            .iter()
            .chain(self.modules)
            .map(|(name, text)| script_of(name, text))
            .collect::<String>();
        Ok(format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main id="page"></main>
<noscript>
{without_script}
</noscript>
<script type="application/json" id="data">{data}</script>
<script type="module">
const colourAnchors = {COLOURS:?};
const modules = {{}};
const pageData = JSON.parse(document.getElementById("data").textContent);
{modules}</script>
</body>
</html>
"#,
            title = escaped_html(self.title),
            style = include_str!("../assets/page.css"),
            without_script = self.without_script,
            data = inert(&json),
        ))
    }
}

/// A module as a part of one script, in a scope of its own. The head of whatever is exported stands
/// on one line; nothing is renamed on the way.
fn script_of(name: &str, text: &str) -> String {
    let mut script = String::from("{\n");
    let mut exported = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.to_owned();
        while line.starts_with("import ") && !line.contains(" from ") {
            line.extend(lines.next());
        }
        let imported = line
            .strip_prefix("import ")
            .and_then(|rest| rest.split_once(" from "));
        if let Some((names, from)) = imported {
            let from = from.trim_end_matches(';').replace("./", "");
            let _ = writeln!(script, "const {names} = modules[{from}];");
            continue;
        }
        let rest = line.strip_prefix("export ");
        // `function draw(…`, `const legend = …`
        exported.extend(
            rest.and_then(|rest| rest.split([' ', '(']).nth(1))
                .map(str::to_owned),
        );
        script += rest.unwrap_or(&line);
        script += "\n";
    }
    script + &format!("modules[{name:?}] = {{ {} }};\n}}\n", exported.join(", "))
}

/// The same JSON without characters that end a script or begin markup.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Text for HTML, in content or between quotes. Control characters and those that turn the
/// direction of text become visible, so that a token looks like what it is: `U+202E`.
///
/// ```
/// use headlight_report::escaped_html;
///
/// assert_eq!(escaped_html("</script> & \"two\"\n"), "&lt;/script&gt; &amp; &quot;two&quot;⟨U+000A⟩");
/// assert_eq!(escaped_html("\u{202e}abc"), "⟨U+202E⟩abc");
/// ```
#[must_use]
pub fn escaped_html(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().fold(String::new(), |mut html, c| {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c if c.is_control() || turns(c) => html.extend(format!("⟨U+{:04X}⟩", c as u32).chars()),
            c => html.push(c),
        }
        html
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser finds between the tags of the data.
    fn data_of(html: &str) -> &str {
        let start = html.find("id=\"data\">").expect("data") + "id=\"data\">".len();
        &html[start..start + html[start..].find("</script>").expect("an end")]
    }

    #[test]
    fn hostile_text_stays_data() {
        let hostile = [
            "</script><script>alert(1)</script>",
            "<!--",
            "\"'\n\r\t\u{0}\u{2028}",
            "\u{202e}evil",
            "a&b",
        ];
        let page = Page {
            title: hostile[0],
            modules: &[],
            data: &hostile,
            without_script: "",
        };
        let html = page.html().unwrap();
        assert!(!html.contains("alert(1)</script>"));
        let read: Vec<String> = serde_json::from_str(data_of(&html)).unwrap();
        assert_eq!(read, hostile);
    }

    #[test]
    fn a_module_keeps_its_own_scope() {
        let text = "import {\n  element,\n} from \"./elements.js\";\nexport function draw(a) {}\nexport const b = 1;\n";
        let script = "{\nconst {  element,} = modules[\"elements.js\"];\nfunction draw(a) {}\nconst b = 1;\n\
                      modules[\"own.js\"] = { draw, b };\n}\n";
        assert_eq!(script_of("own.js", text), script);
    }

    #[test]
    fn every_import_is_there_before_it_is_used() {
        for own in [
            crate::report_page::MODULES.as_slice(),
            &crate::live_page::MODULES,
        ] {
            let mut known = Vec::new();
            for (name, text) in COMPONENTS.iter().chain(own) {
                let imports = text
                    .split(" from \"./")
                    .skip(1)
                    .filter_map(|rest| rest.split('"').next());
                for import in imports {
                    assert!(known.contains(&import), "{name} imports {import}");
                }
                known.push(*name);
            }
        }
    }
}
