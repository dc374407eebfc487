//! A run on the whole terminal: the loss, the heads by their roles, the pattern of one of them as
//! it forms.
//!
//! A thread of its own draws and listens to the keys, so that training does not wait for either.
//! Everything goes to standard error; standard output stays for results.

mod draw;
mod pattern;
mod state;

use std::{
    io::{self, IsTerminal, Stderr, stderr},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use headlight_run::{Error, ErrorKind};
use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

use crate::{Ink, say};

pub use state::{News, State};

/// How long news and keys may wait.
const WAIT: Duration = Duration::from_millis(50);

/// Whether the terminal is drawn on and has to be given back.
static DRAWING: AtomicBool = AtomicBool::new(false);

/// The screen of a run. Dropping it gives the terminal back.
pub struct Screen {
    news: Option<Sender<News>>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If standard error is no terminal, or it cannot be drawn on.
    pub fn open(state: State) -> Result<Self, Error> {
        if !stderr().is_terminal() {
            return Err(Error::new("--screen", "standard error is no terminal"));
        }
        let terminal = take_terminal().map_err(|error| {
            give_back();
            let message = format_args!("the terminal cannot be drawn on: {error}");
            Error::of(ErrorKind::Io, "--screen", message).caused_by(error)
        })?;
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let ink = if no_colour {
            Ink::Characters
        } else {
            Ink::Colour
        };
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || show(terminal, state, ink, &receiver));
        Ok(Self {
            news: Some(sender),
            thread: Some(thread),
        })
    }

    /// Shows something new; false once the screen was closed.
    #[must_use]
    pub fn tell(&self, news: News) -> bool {
        self.news
            .as_ref()
            .is_some_and(|sender| sender.send(news).is_ok())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.news = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn take_terminal() -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    static HOOK: Once = Once::new();
    // What a panic says must not be lost with the screen.
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
    DRAWING.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stderr(), EnterAlternateScreen)?;
    Terminal::new(CrosstermBackend::new(stderr()))
}

/// Leaves the terminal as it was found, if it was not left already.
fn give_back() {
    if DRAWING.swap(false, Ordering::SeqCst) {
        // Whatever fails here, there is nothing better to do.
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), LeaveAlternateScreen, Show);
    }
}

/// Why the screen closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// Training has ended, or someone has seen enough.
    Quietly,
    /// Someone wants training to stop.
    Interrupted,
}

fn show(
    mut terminal: Terminal<CrosstermBackend<Stderr>>,
    mut state: State,
    ink: Ink,
    news: &Receiver<News>,
) {
    let closing = follow(&mut terminal, &mut state, ink, news);
    give_back();
    // What was said on the screen stays to be read.
    for line in &state.lines {
        say(line);
    }
    match closing {
        Ok(Closing::Quietly) => {}
        Ok(Closing::Interrupted) => interrupt(),
        Err(error) => {
            say(&format!(
                "--screen: the terminal cannot be drawn on: {error}; going on without it"
            ));
        }
    }
}

/// Draws and listens until there is a reason to close.
fn follow(
    terminal: &mut Terminal<CrosstermBackend<Stderr>>,
    state: &mut State,
    ink: Ink,
    news: &Receiver<News>,
) -> io::Result<Closing> {
    let mut has_changed = true;
    while DRAWING.load(Ordering::SeqCst) {
        loop {
            match news.try_recv() {
                Ok(news) => state.learn(news),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(Closing::Quietly),
            }
            has_changed = true;
        }
        if has_changed {
            terminal.draw(|frame| draw::draw(frame, state, ink))?;
        }
        has_changed = poll(WAIT)?;
        if has_changed {
            match read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match closing_of(key) {
                    Some(closing) => return Ok(closing),
                    None => press(state, key.code),
                },
                _ => {}
            }
        }
    }
    Ok(Closing::Quietly)
}

fn closing_of(key: KeyEvent) -> Option<Closing> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Closing::Interrupted)
        }
        KeyCode::Char('q') | KeyCode::Esc => Some(Closing::Quietly),
        _ => None,
    }
}

fn press(state: &mut State, key: KeyCode) {
    match key {
        KeyCode::Left => state.choose(0, -1),
        KeyCode::Right => state.choose(0, 1),
        KeyCode::Up => state.choose(-1, 0),
        KeyCode::Down => state.choose(1, 0),
        _ => {}
    }
}

/// What the terminal does on Ctrl-C when nobody draws on it.
fn interrupt() {
    #[cfg(unix)]
    if let Err(error) = nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT) {
        say(&format!("cannot interrupt: {error}; press Ctrl-C again"));
    }
    #[cfg(not(unix))]
    say("press Ctrl-C again");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_close_the_screen_or_choose_a_head() {
        let key = |code, modifiers| closing_of(KeyEvent::new(code, modifiers));
        assert_eq!(
            key(KeyCode::Char('q'), KeyModifiers::NONE),
            Some(Closing::Quietly)
        );
        assert_eq!(
            key(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Closing::Interrupted)
        );
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Left, KeyModifiers::NONE), None);
    }
}
