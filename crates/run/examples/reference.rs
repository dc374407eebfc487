//! Prints `docs/configuration.md`:
//!
//! ```sh
//! cargo run --example reference > docs/configuration.md
//! ```

fn main() {
    print!("{}", headlight_run::reference());
}
