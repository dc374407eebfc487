//! Prints `docs/results/sensitivity.svg`:
//!
//! ```sh
//! cargo run --example sensitivity > docs/results/sensitivity.svg
//! ```

use headlight_heads::RoleRate;
use headlight_report::sensitivity_svg;

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    print!("{}", sensitivity_svg(RoleRate::all()));
}
