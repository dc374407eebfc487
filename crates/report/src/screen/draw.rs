//! The screen as a function of what is known.

use headlight_heads::Role;
use indicatif::HumanDuration;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    symbols::Marker,
    text::{Line, Span},
    widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph},
};

use super::{
    pattern::{draw_pattern, tokens_per_dot},
    state::{Head, State},
};
use crate::{
    Ink,
    colour::terminal_colour,
    line_colour, role_colour,
    role_look::{role_letter, role_word},
};

/// Lines of what was said last.
const SAID: u16 = 4;

/// Draws everything.
pub fn draw(frame: &mut Frame, state: &State, ink: Ink) {
    let layers = state.heads.last().map_or(1, |head| head.name.layer + 1);
    let [top, middle, said, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(6),
        Constraint::Length(SAID),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(middle);
    // Below the layers stands what the letters mean; then there is the border.
    let legend = legend(usize::from(left.width.saturating_sub(2)), ink);
    let heads_height = u16::try_from(layers + legend.len() + 2)
        .unwrap_or(u16::MAX)
        .min(left.height / 2);
    let [curve, heads] =
        Layout::vertical([Constraint::Min(5), Constraint::Length(heads_height)]).areas(left);

    let State {
        task,
        step,
        steps,
        text,
        left,
        ..
    } = state;
    let now = format!(
        "{task}  {step}/{steps}  {text}  {:#} left",
        HumanDuration(*left)
    );
    frame.render_widget(Paragraph::new(now), top);
    draw_curve(frame, curve, state, ink);
    draw_heads(frame, heads, state, legend, ink);
    draw_chosen(frame, right, state, ink);
    let newest = state.lines.iter().rev().take(usize::from(SAID)).rev();
    frame.render_widget(
        Paragraph::new(
            newest
                .map(|line| Line::raw(line.as_str()))
                .collect::<Vec<_>>(),
        ),
        said,
    );
    let help = "arrows: another head   q: close, training goes on   Ctrl-C: stop training";
    frame.render_widget(Paragraph::new(help), keys);
}

fn draw_curve(frame: &mut Frame, area: Rect, state: &State, ink: Ink) {
    let last = state.steps as f64;
    let floor_line = state.floor.map(|floor| [(0.0, floor), (last, floor)]);
    let mut lines = Vec::new();
    let mut title = " loss in nats ".to_owned();
    let mut highest: f64 = 1e-9;
    if let (Some(floor), Some(points)) = (state.floor, &floor_line) {
        // The loss is drawn over it.
        lines.push(curve("floor", points, 1, ink));
        title = format!(" loss in nats, floor {floor:.4} ");
        highest = highest.max(floor);
    }
    lines.push(curve("loss", &state.losses, 0, ink));
    for (_, loss) in &state.losses {
        highest = highest.max(*loss);
    }
    // The screen hides what was printed before, so it repeats the address of the page.
    let mut page = String::new();
    if let Some(address) = state.page {
        page = format!(" http://{address} ");
    }
    let steps = Axis::default()
        .bounds([0.0, last])
        .labels(["0".to_owned(), state.steps.to_string()]);
    let nats = Axis::default()
        .bounds([0.0, highest])
        .labels(["0".to_owned(), format!("{highest:.2}")]);
    let chart = Chart::new(lines)
        .block(Block::bordered().title(title).title_bottom(page))
        .x_axis(steps)
        .y_axis(nats);
    frame.render_widget(chart, area);
}

fn curve<'a>(name: &'a str, points: &'a [(f64, f64)], index: usize, ink: Ink) -> Dataset<'a> {
    Dataset::default()
        .name(name)
        .graph_type(GraphType::Line)
        .marker(Marker::Braille)
        .style(painted(Style::new(), ink, Some(line_colour(index))))
        .data(points)
}

/// What the letters of roles mean, on as many lines of `width` characters as it takes.
fn legend(width: usize, ink: Ink) -> Vec<Line<'static>> {
    const GAP: &str = "  ";
    let mut lines: Vec<Line> = Vec::new();
    for role in Role::all() {
        let words = format!("{} {}", role_letter(role), role_word(role));
        let words = Span::styled(words, painted(Style::new(), ink, colour_of(role)));
        match lines.last_mut() {
            Some(line) if line.width() + GAP.len() + words.width() <= width => {
                line.push_span(GAP);
                line.push_span(words);
            }
            _ => lines.push(words.into()),
        }
    }
    lines
}

fn draw_heads(frame: &mut Frame, area: Rect, state: &State, legend: Vec<Line>, ink: Ink) {
    let mut lines: Vec<Line> = Vec::new();
    for layer in state.heads.chunk_by(|a, b| a.name.layer == b.name.layer) {
        let mut line = vec![Span::raw(format!("L{:<2}", layer[0].name.layer))];
        line.extend(
            layer
                .iter()
                .map(|head| head_span(head, state.chosen_head() == Some(head), ink)),
        );
        lines.push(line.into());
    }
    lines.extend(legend);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" heads look like ")),
        area,
    );
}

/// `[P .98]` for the chosen head, ` P .98 ` for another.
fn head_span(head: &Head, is_chosen: bool, ink: Ink) -> Span<'static> {
    let score = head.score.map_or_else(
        || "   ".to_owned(),
        |score| format!("{score:.2}").replacen("0.", ".", 1),
    );
    let (open, close) = if is_chosen { ('[', ']') } else { (' ', ' ') };
    let style = painted(Style::new(), ink, colour_of(head.role));
    let style = if is_chosen {
        style.add_modifier(Modifier::BOLD | Modifier::REVERSED)
    } else {
        style
    };
    Span::styled(
        format!("{open}{} {score:<4}{close}", role_letter(head.role)),
        style,
    )
}

fn draw_chosen(frame: &mut Frame, area: Rect, state: &State, ink: Ink) {
    let inner = Block::bordered().inner(area);
    let (Some(head), Some(patterns)) = (state.chosen_head(), &state.patterns) else {
        frame.render_widget(
            Block::bordered().title(" patterns on the probe: after the first measurement "),
            area,
        );
        return;
    };
    let length = patterns.tokens().first().map_or(0, Vec::len);
    let scale = match tokens_per_dot(length, inner, ink) {
        1 => String::new(),
        tokens => format!(", {tokens} tokens a dot"),
    };
    let title = format!(" {}: queries down, keys across{scale} ", head.name);
    frame.render_widget(Block::bordered().title(title), area);
    draw_pattern(
        frame.buffer_mut(),
        inner,
        patterns,
        head.name,
        state.may_attend,
        ink,
    );
}

/// The colour of a role; `mixed` has none.
fn colour_of(role: Role) -> Option<[u8; 3]> {
    match role {
        Role::Of(measure) => Some(role_colour(measure)),
        Role::Mixed => None,
    }
}

/// In this colour, if there are colours.
fn painted(style: Style, ink: Ink, colour: Option<[u8; 3]>) -> Style {
    match (ink, colour) {
        (Ink::Colour, Some(colour)) => {
            let [r, g, b] = terminal_colour(colour);
            style.fg(Color::Rgb(r, g, b))
        }
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headlight_heads::MayAttend;
    use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

    use super::{
        super::state::{News, tests::measured},
        *,
    };

    fn drawn(state: &State, ink: Ink, [width, height]: [u16; 2]) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state, ink)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn text(buffer: &Buffer) -> String {
        let symbols: Vec<&str> = buffer
            .content()
            .iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect();
        symbols
            .chunks(usize::from(buffer.area.width))
            .map(|line| line.concat() + "\n")
            .collect()
    }

    fn state() -> State {
        let mut state = State::new("repeat", 100, Some(0.5), MayAttend::Causal);
        state.learn(measured(50));
        state.learn(News::Step(60, Duration::from_secs(7)));
        state.learn(News::Line(
            "step 50: L1H0 looks like: induction (score 0.90)".to_owned(),
        ));
        state.choose(-1, 0);
        state.choose(0, 1);
        state.page = Some(([127, 0, 0, 1], 8351).into());
        state
    }

    #[test]
    fn everything_that_is_known_is_there() {
        let screen = text(&drawn(&state(), Ink::Characters, [100, 24]));
        for part in [
            "repeat  60/100  loss 2.0000  7s left",
            "loss in nats, floor 0.5000",
            "http://127.0.0.1:8351",
            "L0  M      [P .98 ]",
            "L1  I .90   M     ",
            "│P previous  C current",
            "  M mixed",
            "L0H1: queries down, keys across ",
            "│@   ",
            "│..@.",
            "step 50: L1H0 looks like: induction (score 0.90)",
            "q: close",
        ] {
            assert!(screen.contains(part), "{part:?} is not in\n{screen}");
        }
    }

    #[test]
    fn at_80_columns_the_legend_has_every_role_in_full() {
        let screen = text(&drawn(&state(), Ink::Characters, [80, 24]));
        for role in Role::all() {
            let words = format!("{} {}", role_letter(role), role_word(role));
            assert!(screen.contains(&words), "{words:?} is not in\n{screen}");
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let coloured = |ink| {
            let cells = drawn(&state(), ink, [100, 24]).content().to_vec();
            cells
                .iter()
                .filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
                .count()
        };
        assert_eq!(coloured(Ink::Characters), 0);
        assert!(coloured(Ink::Colour) > 0);
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_on() {
        for size in [[1, 1], [10, 3], [20, 8], [40, 60], [300, 100]] {
            drawn(&state(), Ink::Colour, size);
            drawn(
                &State::new("repeat", 100, None, MayAttend::Causal),
                Ink::Characters,
                size,
            );
        }
    }
}
