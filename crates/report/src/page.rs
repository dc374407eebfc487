//! One HTML file that needs nothing else: styles, scripts and data are in it.

use std::fmt::Write as _;

use headlight_run::{Error, ErrorKind};
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
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
const COMPONENTS: [(&str, &str); 19] = [
    module!("elements.js"),
    module!("colour.js"),
    module!("theme.js"),
    module!("vocabulary.js"),
    module!("glossary.js"),
    module!("picture.js"),
    module!("may_attend.js"),
    module!("grid.js"),
    module!("heatmap.js"),
    module!("data_table.js"),
    module!("dot_product.js"),
    module!("matrix.js"),
    module!("curves.js"),
    module!("walk_stages.js"),
    module!("walk.js"),
    module!("why.js"),
    module!("circuit_layout.js"),
    module!("circuit_picture.js"),
    module!("circuit.js"),
];

/// What a page is allowed to do: run what is in it, and ask nobody but the server it came from, if
/// it came from one.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'";

/// A page that draws `data` with its own modules and with those every page has.
#[derive(Debug, Clone)]
pub(crate) struct Page<'a, T> {
    /// Names the window.
    pub title: &'a str,
    /// The page's own modules, names and texts, each after those it imports. They may import the
    /// modules of `assets/`.
    pub modules: &'a [(&'a str, &'a str)],
    /// Found by the modules as `pageData`.
    pub data: &'a T,
    /// For readers without JavaScript.
    pub without_script: Markup,
}

impl<T: Serialize> Page<'_, T> {
    /// The file.
    ///
    /// # Errors
    /// If `data` has no JSON form.
    pub fn html(&self) -> Result<String, Error> {
        let json = serde_json::to_string(self.data)
            .map_err(|error| Error::because(ErrorKind::Internal, self.title, error))?;
        let modules = COMPONENTS
            .iter()
            .chain(self.modules)
            .map(|(name, text)| script_of(name, text))
            .collect::<String>();
        let script = format!(
            "\nconst colourAnchors = {COLOURS:?};\nconst modules = {{}};\n\
             const pageData = JSON.parse(document.getElementById(\"data\").textContent);\n{modules}"
        );
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { (Visible(self.title)) }
                    style { (PreEscaped(include_str!("../assets/page.css"))) }
                }
                body {
                    main id="page" {}
                    noscript { (self.without_script) }
                    script type="application/json" id="data" { (PreEscaped(inert(&json))) }
                    script type="module" { (PreEscaped(script)) }
                }
            }
        };
        Ok(page.into_string())
    }
}

/// A module as a part of one script, in a scope of its own. The head of whatever is exported stands
/// on one line; nothing is renamed on the way.
///
/// The modules could be `data:` addresses in an import map instead. But a module without a folder
/// finds no `./elements.js`: every file would import bare names, which no editor follows, and the
/// policy would let scripts come from addresses.
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
        exported.extend(rest.and_then(exported_name));
        script += rest.unwrap_or(&line);
        script += "\n";
    }
    script + &format!("modules[{name:?}] = {{ {} }};\n}}\n", exported.join(", "))
}

/// The name in `function draw(…`, `async function ask(…`, `const legend = …` or `class Plot {`.
fn exported_name(declaration: &str) -> Option<String> {
    let declaration = declaration.strip_prefix("async ").unwrap_or(declaration);
    let (keyword, rest) = declaration.split_once(' ')?;
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let name: String = rest.chars().take_while(|c| is_part(*c)).collect();
    let is_known = ["function", "const", "class"].contains(&keyword);
    (is_known && !name.is_empty()).then_some(name)
}

/// The same JSON without characters that end a script or begin markup.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Text in which control characters and those that turn the direction of text are seen, so that a
/// token looks like what it is: `U+202E`. As all text in `html!`, it stays text.
pub(crate) struct Visible<'a>(pub &'a str);

impl Render for Visible<'_> {
    fn render_to(&self, html: &mut String) {
        let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let mut visible = String::new();
        for c in self.0.chars() {
            if c.is_control() || turns(c) {
                let _ = write!(visible, "⟨U+{:04X}⟩", c as u32);
            } else {
                visible.push(c);
            }
        }
        visible.render_to(html);
    }
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
            without_script: html! { (Visible(hostile[0])) },
        };
        let html = page.html().unwrap();
        assert!(!html.contains("alert(1)</script>"));
        let read: Vec<String> = serde_json::from_str(data_of(&html)).unwrap();
        assert_eq!(read, hostile);
    }

    #[test]
    fn text_of_others_is_escaped_and_seen() {
        let html = |text| html! { (Visible(text)) }.into_string();
        assert_eq!(
            html("</script> & \"two\"\n"),
            "&lt;/script&gt; &amp; &quot;two&quot;⟨U+000A⟩"
        );
        assert_eq!(html("\u{202e}abc"), "⟨U+202E⟩abc");
    }

    #[test]
    fn every_export_is_of_a_form_that_is_understood() {
        assert_eq!(
            exported_name("async function ask(a) {").as_deref(),
            Some("ask")
        );
        assert_eq!(exported_name("class Plot {").as_deref(), Some("Plot"));
        assert_eq!(exported_name("const $b = 1;").as_deref(), Some("$b"));
        for other in [
            "default function () {",
            "{ a, b };",
            "const { a } = b;",
            "let a = 1;",
        ] {
            assert_eq!(exported_name(other), None, "{other}");
        }
        let own = crate::report_page::MODULES
            .iter()
            .chain(&crate::live_page::MODULES);
        let own = own
            .chain(&crate::learn_page::MODULES)
            .chain(&crate::comparison_page::MODULES);
        let all = COMPONENTS
            .iter()
            .chain(own)
            .chain(&crate::explorer_page::MODULES);
        for (name, text) in all {
            for line in text.lines().filter(|line| line.starts_with("export")) {
                let declaration = line.strip_prefix("export ").and_then(exported_name);
                assert!(declaration.is_some(), "{name}: {line}");
            }
        }
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
            &crate::learn_page::MODULES,
            &crate::explorer_page::MODULES,
            &crate::comparison_page::MODULES,
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
