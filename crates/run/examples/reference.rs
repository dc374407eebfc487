//! Prints `docs/configuration.md`:
//!
//! ```sh
//! cargo run --example reference > docs/configuration.md
//! ```

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    print!("{}", headlight_run::reference());
}
