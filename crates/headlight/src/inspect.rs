//! Shows what the heads of a run learned.

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
};

use clap::{
    Command, CommandFactory, Parser, Subcommand,
    error::{self, ContextKind, ContextValue},
};
use headlight_heads::{Ablation, HeadName, SequenceKind};
use headlight_inspect::{
    ActivationsOf, ExportFormat, HeadPattern, PictureFiles, PredictArguments, Subject,
    curves_picture, curves_text, detect_printout, head_curves_picture, head_curves_text,
    offsets_printout, swaps_printout, write_learn_page,
};
use headlight_report::{Terminal, say};
use headlight_residual::{Generation, Sampling};
use headlight_run::{Error, ErrorKind, Weights};
use serde::Serialize;

use crate::command_line::{self, print};

/// The verb that needs no run.
const LEARN: &str = "learn";

/// Look at the attention heads of a run.
///
/// Exit codes: 0 done, 1 failed while running, 2 the input was wrong.
#[derive(Parser)]
#[command(version, subcommand_negates_reqs = true)]
pub struct Arguments {
    /// The run, for example runs/induction
    #[arg(required = true)]
    run: Option<PathBuf>,
    /// What to show [default: heads]
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// The weights to look at: best, last or step-N [default: last, or the newest checkpoint of a
    /// run that was stopped]
    #[arg(long, global = true, value_name = "POINT")]
    at: Option<Weights>,
    /// flex, ndarray, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, global = true, default_value = "flex")]
    device: String,
}

#[derive(Subcommand)]
enum What {
    /// Every head: its role, its scores, and what they are measured against
    Heads,
    /// Patterns as heat maps
    Pattern {
        /// The head, written L0H1 [default: every head]
        #[arg(long)]
        head: Option<HeadName>,
        /// Token names with spaces between them, for a text some text [default: a sequence of the
        /// probe]
        #[arg(long)]
        prompt: Option<String>,
        #[command(flatten)]
        files: PictureFiles,
    },
    /// What is left without each head, without the heads of a role, and without ever more heads
    Ablate {
        /// These heads together too, written L1H0,L1H2
        #[arg(long, value_delimiter = ',')]
        heads: Vec<HeadName>,
        /// What stands in place of a head's blend of values: zero, its mean over sequences and
        /// positions, or its blend in another sequence (resample)
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// Which input of a later layer needs what a layer or head wrote
    Paths,
    /// What heads do position by position: where they hold a role, how much they write, accuracy
    /// without them
    Positions {
        /// This head alone, written L0H1, at every position
        #[arg(long)]
        head: Option<HeadName>,
        /// What stands in place of heads that are off
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// Work that heads share: a distance forbidden to a whole layer, keys and queries together,
    /// pairs of heads
    Shared {
        /// What stands in place of heads that are off
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// Where in the model the difference between two prompts lives: activations of one put into the
    /// other
    Patch {
        /// Token names with spaces between them, for a text some text [default: made from the
        /// probe]
        #[arg(long)]
        prompt: Option<String>,
        /// As many tokens with another answer [default: what followed the last token before is
        /// replaced]
        #[arg(long, requires = "prompt")]
        corrupted: Option<String>,
        /// The position whose next token is the answer, counted from 0 [default: the last]
        #[arg(long, requires = "prompt")]
        position: Option<usize>,
    },
    /// What comes next after a prompt, with heads switched off and activations of another prompt
    /// put in
    Predict(PredictArguments),
    /// Whether predictions follow when the context says that another token came next
    Swap,
    /// What the stream says at each depth, and which parts say it
    Lens {
        /// Token names with spaces between them, for a text some text [default: sequences of the
        /// run's task]
        #[arg(long)]
        prompt: Option<String>,
    },
    /// What the heads' weights do by themselves: copying, positions, who fits whom
    Circuits {
        /// This head token by token too, written L1H0
        #[arg(long)]
        head: Option<HeadName>,
    },
    /// The scores that TransformerLens gives the heads, for comparison with that tool
    Detect {
        /// Token names with spaces between them, for a text some text [default: the probe]
        #[arg(long)]
        prompt: Option<String>,
    },
    /// Where heads look around an earlier equal token, by distance, and weighted by what the keys
    /// carry
    Offsets,
    /// When what formed: levels of the loss, half-way steps, the loss by position
    Phases,
    /// Which head follows each gold relation of the task, and what the model answers without it
    Relations,
    /// What the model writes, token by token
    Generate {
        /// Token names with spaces between them; may be given several times, and each prompt gets
        /// its own text [default: the first half of a sequence of the run's task]
        #[arg(long)]
        prompt: Vec<String>,
        /// The most tokens to write
        #[arg(long, default_value_t = 32)]
        tokens: usize,
        /// Divides the logits; 0 takes the likeliest token
        #[arg(long, default_value_t = 1.0)]
        temperature: f64,
        /// Only the K likeliest tokens may come
        #[arg(long, value_name = "K")]
        top_k: Option<usize>,
        /// Only the likeliest tokens that together reach this probability may come
        #[arg(long, value_name = "P")]
        top_p: Option<f64>,
        /// What the draws follow from
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Text that ends the text, or token names with spaces between them; may be given several
        /// times
        #[arg(long, value_name = "TEXT")]
        stop: Vec<String>,
    },
    /// Write the model and its tokenizer for other tools
    Export {
        /// The folder to write into
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Only this form [default: all that the architecture has]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
    },
    /// Write activations for notebooks, with the names and shapes of TransformerLens
    Activations {
        /// Which activations; a * stands for any run of characters; may be given several times
        #[arg(long, value_name = "SITE", default_value = "*")]
        sites: Vec<String>,
        /// Token names with spaces between them, for a text some text
        #[arg(long, conflicts_with = "on")]
        prompt: Option<String>,
        /// The sequences that the model reads: probe, or task for its validation sequences
        #[arg(long, value_name = "SEQUENCES", default_value_t = SequenceKind::Probe)]
        on: SequenceKind,
        /// The safetensors file to write
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Accuracy over training
    Curves {
        #[command(flatten)]
        files: PictureFiles,
    },
    /// How every head's scores changed over training, on the probe
    Scores {
        /// This head alone, written L0H1
        #[arg(long)]
        head: Option<HeadName>,
        #[command(flatten)]
        files: PictureFiles,
    },
    /// A page on 127.0.0.1 to play with: prompts, heads switched off, activations patched
    Serve {
        /// Where to listen; 0 takes a free port
        #[arg(long, default_value_t = 8350)]
        port: u16,
        /// What stands in place of heads that are off, until it is chosen on the page: zero, mean
        /// or resample
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// A page that explains attention with numbers to click on; needs no run
    Learn {
        /// Where to write it
        #[arg(long, value_name = "FILE", default_value = "learn.html")]
        out: PathBuf,
    },
    /// The whole run as one page, written to report.html in the run
    Report {
        /// What stands in place of heads that are off: zero, mean or resample. Training measures
        /// with mean; the others are measured anew
        #[arg(long, value_name = "zero|mean|resample", default_value_t)]
        by: Ablation,
    },
    /// The trained model on its own task, or on the task of another configuration
    Evaluate {
        /// The configuration that names the other task
        #[arg(long)]
        on: Option<PathBuf>,
    },
}

/// Reads the arguments of `inspect`.
#[must_use]
pub fn arguments() -> Arguments {
    command_line::parse(with_usage(Arguments::command(), "inspect"), "inspect")
}

/// `inspect <RUN> export [OPTIONS] --to <DIR>` as the usage of each verb: a verb stands behind RUN,
/// which clap leaves out. `program` is how this program is called.
#[must_use]
pub fn with_usage(command: Command, program: &str) -> Command {
    command.mut_subcommands(|verb| {
        if verb.get_name() == LEARN {
            return verb;
        }
        let mut usage = format!("{program} <RUN> {} [OPTIONS]", verb.get_name());
        for argument in verb.get_arguments() {
            if let (true, Some(name)) = (argument.is_required_set(), argument.get_long()) {
                let value = argument.get_value_names().unwrap_or_default().join(" ");
                usage = format!("{usage} --{name} <{value}>");
            }
        }
        verb.override_usage(usage)
    })
}

/// Where RUN belongs, for whoever wrote `inspect pattern runs/induction`.
pub(crate) fn run_behind_verb(error: &clap::Error, program: &str) -> Option<String> {
    let command = Arguments::command();
    let verb = std::env::args()
        .skip(program.split(' ').count())
        .find(|argument| command.find_subcommand(argument).is_some())?;
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_run = error.kind() == error::ErrorKind::UnknownArgument && !argument.starts_with('-');
    (is_run && verb != LEARN)
        .then(|| format!("RUN stands before the verb: {program} {argument} {verb}"))
}

/// Runs the program.
///
/// # Errors
/// If the input is wrong, or the program fails while it runs.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let what = arguments.what.as_ref().unwrap_or(&What::Heads);
    if let What::Learn { out } = what {
        write_learn_page(out, &arguments.device)?;
        return print(&format!("Written to {}.", out.display()));
    }
    let no_run = || {
        Error::new(
            "inspect",
            "no run is named; for example: inspect runs/induction heads",
        )
    };
    let run = arguments.run.as_ref().ok_or_else(no_run)?;
    let subject = match arguments.at {
        Some(at) => Subject::open_at(run, &arguments.device, at)?,
        None => Subject::open(run, &arguments.device)?,
    };
    if let Some(note) = subject.note() {
        say(&note);
    }
    if let What::Serve { port, by } = what {
        return subject.serve(*port, *by, announce);
    }
    let text = show(&subject, what, arguments.json);
    print(&text?)
}

fn show(subject: &Subject, what: &What, json: bool) -> Result<String, Error> {
    let terminal = Terminal::of_standard_output();
    match (what, json) {
        (What::Heads, false) => subject
            .heads_printout()
            .map(|printout| printout.draw(&terminal)),
        (What::Heads, true) => subject.heads().and_then(|heads| to_json(&heads)),
        (
            What::Pattern {
                head,
                prompt,
                files,
            },
            json,
        ) => {
            let patterns = subject.patterns(*head, prompt.as_deref());
            patterns.and_then(|patterns| {
                let written = files
                    .any()
                    .then(|| files.write(&HeadPattern::picture(&patterns)?))
                    .transpose()?;
                match (json, written, head) {
                    (true, _, Some(_)) => to_json(&patterns[0]),
                    (true, _, None) => to_json(&patterns),
                    (false, Some(written), _) => Ok(written),
                    (false, None, _) => Ok(patterns
                        .iter()
                        .map(|pattern| pattern.draw(&terminal))
                        .collect::<Vec<_>>()
                        .join("\n")),
                }
            })
        }
        (What::Ablate { heads, by }, json) => {
            let ablations = subject.ablations(heads, *by);
            ablations.and_then(|ablations| {
                if json {
                    to_json(&ablations)
                } else {
                    Ok(ablations.printout().draw(&terminal))
                }
            })
        }
        (What::Paths, json) => subject.paths().and_then(|paths| {
            if json {
                to_json(&paths)
            } else {
                Ok(paths.printout().draw(&terminal))
            }
        }),
        (What::Positions { head, by }, json) => {
            subject.positions(*head, *by).and_then(|positions| {
                if json {
                    to_json(&positions)
                } else {
                    Ok(positions.printout().draw(&terminal))
                }
            })
        }
        (What::Shared { by }, json) => subject.shared_work(*by).and_then(|shared| {
            if json {
                to_json(&shared)
            } else {
                Ok(shared.printout().draw(&terminal))
            }
        }),
        (What::Lens { prompt }, json) => subject.lens(prompt.as_deref()).and_then(|lens| {
            if json {
                to_json(&lens)
            } else {
                Ok(lens.printout().draw(&terminal))
            }
        }),
        (
            What::Activations {
                sites,
                prompt,
                on,
                to,
            },
            json,
        ) => {
            let of = match prompt {
                Some(prompt) => ActivationsOf::Prompt(prompt),
                None => ActivationsOf::Sequences(*on),
            };
            let written = subject.write_activations(sites, of, to)?;
            if json {
                to_json(&written)
            } else {
                Ok(written.printout().draw(&terminal))
            }
        }
        (What::Circuits { head }, json) => subject.circuits(*head).and_then(|tables| {
            if json {
                to_json(&tables)
            } else {
                Ok(tables.printout().draw(&terminal))
            }
        }),
        (What::Detect { prompt }, json) => {
            let heads = subject.detect(prompt.as_deref());
            heads.and_then(|heads| {
                if json {
                    to_json(&heads)
                } else {
                    Ok(detect_printout(&heads).draw(&terminal))
                }
            })
        }
        (
            What::Patch {
                prompt,
                corrupted,
                position,
            },
            json,
        ) => {
            let patch = subject.patch(prompt.as_deref(), corrupted.as_deref(), *position);
            patch.and_then(|patch| {
                if json {
                    to_json(&patch)
                } else {
                    Ok(patch.printout().draw(&terminal))
                }
            })
        }
        (What::Predict(arguments), json) => {
            let predictions = subject.predict(arguments);
            predictions.and_then(|predictions| {
                if json {
                    to_json(&predictions)
                } else {
                    Ok(predictions.printout().draw(&terminal))
                }
            })
        }
        (What::Swap, json) => subject.swaps().and_then(|swaps| {
            if json {
                to_json(&swaps)
            } else {
                Ok(swaps_printout(&swaps).draw(&terminal))
            }
        }),
        (What::Offsets, json) => subject.offsets().and_then(|heads| {
            if json {
                to_json(&heads)
            } else {
                Ok(offsets_printout(&heads).draw(&terminal))
            }
        }),
        (What::Relations, json) => subject.relations().and_then(|heads| {
            if json {
                to_json(&heads)
            } else {
                Ok(heads.printout().draw(&terminal))
            }
        }),
        (What::Phases, json) => subject.phases().and_then(|phases| {
            if json {
                to_json(&phases)
            } else {
                Ok(phases.printout().draw(&terminal))
            }
        }),
        (
            What::Generate {
                prompt,
                tokens,
                temperature,
                top_k,
                top_p,
                seed,
                stop,
            },
            json,
        ) => {
            let sampling = Sampling {
                temperature: *temperature,
                top_k: *top_k,
                top_p: *top_p,
            };
            let generation = Generation {
                tokens: *tokens,
                sampling,
                seed: *seed,
                ..Generation::default()
            };
            let written = subject.generate(prompt, stop, generation, |token| {
                if !json {
                    print_piece(token);
                }
            });
            written.and_then(|written| match written.as_slice() {
                [one] if json => to_json(one),
                all if json => to_json(&all),
                all => {
                    // The first text was printed as it came.
                    let mut text = format!("\n\n{}", all[0].ending);
                    for other in &all[1..] {
                        text.push_str("\n\n");
                        text.push_str(&other.shown());
                    }
                    Ok(text)
                }
            })
        }
        (What::Export { to, format }, json) => {
            let names = |paths: Vec<PathBuf>| {
                paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
            };
            let written = subject.export(to, *format).map(names);
            written.and_then(|names| {
                if json {
                    to_json(&names)
                } else {
                    Ok(names.join("\n"))
                }
            })
        }
        (What::Curves { files }, json) => subject.curves().and_then(|curves| {
            let written = files
                .any()
                .then(|| files.write(&curves_picture(&curves)))
                .transpose()?;
            match written {
                _ if json => subject.metrics().and_then(|rows| to_json(&rows)),
                Some(written) => Ok(written),
                None => {
                    let mut text = curves_text(&curves, &subject.loss_curves()?, &terminal);
                    if let Some(step) = subject.diverged()? {
                        let stopped = format!(
                            "At step {step} the loss is no number. Training stopped there."
                        );
                        text = format!("{text}\n\n{stopped}");
                    }
                    Ok(text)
                }
            }
        }),
        (What::Scores { head, files }, json) => subject.head_curves(*head).and_then(|heads| {
            let written = files
                .any()
                .then(|| files.write(&head_curves_picture(&heads)))
                .transpose()?;
            match written {
                _ if json => subject.head_rows().and_then(|mut rows| {
                    rows.retain(|row| head.is_none_or(|head| row.head == head));
                    to_json(&rows)
                }),
                Some(written) => Ok(written),
                None => Ok(head_curves_text(&heads, &terminal)),
            }
        }),
        (What::Report { by }, true) => subject.report(*by).and_then(|report| to_json(&report)),
        (What::Report { by }, false) => subject
            .write_report(*by)
            .map(|path| format!("Written to {}.", path.display())),
        (What::Evaluate { on }, json) => {
            let elsewhere = subject.evaluate(on.as_deref());
            elsewhere.and_then(|elsewhere| {
                if json {
                    to_json(&elsewhere)
                } else {
                    Ok(elsewhere.printout().draw(&terminal))
                }
            })
        }
        (What::Learn { .. } | What::Serve { .. }, _) => unreachable!("print no result"),
    }
}

fn announce(address: std::net::SocketAddr) {
    // Whoever waits for the address reads it here; that nobody does is no failure.
    let _ = print(&format!("http://{address}"));
}

/// Shows a token as soon as it is there. In a terminal, a control character that the model learned
/// from a text is a dot: it could move the cursor or worse.
fn print_piece(token: &str) {
    let mut out = std::io::stdout().lock();
    let in_terminal = out.is_terminal();
    let shown = |c: char| {
        if in_terminal && c.is_control() && !matches!(c, '\n' | '\t') {
            '·'
        } else {
            c
        }
    };
    let token: String = token.chars().map(shown).collect();
    // A reader that has gone away is no failure; anything else shows when the ending is printed.
    let _ = write!(out, "{token}").and_then(|()| out.flush());
}

fn to_json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Error::because(ErrorKind::Internal, "--json", error))
}
