//! Prints `docs/verbs.md`:
//!
//! ```sh
//! cargo run --example verbs > docs/verbs.md
//! ```

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    print!("{}", headlight_inspect::verbs_page());
}
