//! `inspect RUN program`: a compiled program, line by line beside the heads that do it.

use headlight_heads::{HeadName, HeadSet, Role};
use headlight_report::{
    KnownHead, Printout, ProgramData, ProgramLine, ProgramTrace, Table, number_or_dash, or_dash,
};
use headlight_residual::{BlockSite, Decoder, Site, token_tensor};
use headlight_run::{Error, ErrorKind, HeadSummary, HeadsUse, UsesRow};
use headlight_tasks as tasks;
use headlight_watch::{Expected, Known, RoleVerdict, no_room};

use super::{ModelParts, Need, Output, Subject, Verb, report::numbers};

/// A compiled program line by line: what computes each line, and whether its heads were found
#[derive(Debug, clap::Args)]
pub struct ProgramVerb {
    /// Token names with spaces between them, the start `<s>` first, to show the values of every line along them
    /// [default: the first validation sequence]
    #[arg(long)]
    prompt: Option<String>,
}

impl Verb for ProgramVerb {
    const NAME: &'static str = "program";
    const NEEDS: &'static [Need] = &[Need::Program];

    fn show(self, subject: Subject, out: &Output) -> Result<(), Error> {
        let program = subject.inspected_program(self.prompt.as_deref())?;
        out.show(&program, program_printout)
    }
}

impl Subject {
    /// The program whose compiled weights the model has; `None` of other models.
    pub(crate) fn known(&self) -> Result<Option<Known>, Error> {
        match self.trained() {
            Ok(run) => Known::of(&run.config),
            Err(_) => Ok(None),
        }
    }

    /// The names of the basis directions of the residual stream, where they have some.
    pub(crate) fn directions(&self) -> Result<Option<Vec<String>>, Error> {
        Ok(self.known()?.map(|known| known.compiled.directions))
    }

    /// The program of a compiled model beside what was found in it, with the values of its lines
    /// along `prompt`, or along the first validation sequence.
    ///
    /// # Errors
    /// If the model was not compiled, or a token of the prompt does not exist.
    pub fn inspected_program(&self, prompt: Option<&str>) -> Result<ProgramData, Error> {
        let Some(known) = self.known()? else {
            let message = "its weights were not compiled from a program; \
                           look at one with inspect compiled:induction program";
            return Err(Error::of(
                ErrorKind::Missing,
                self.path().display(),
                message,
            ));
        };
        let row = if let Some(prompt) = prompt {
            tasks::encode_prompt(&self.vocabulary()?, prompt, self.n_ctx())?
        } else {
            let first = &self.validation()?.sequences[0];
            first.tokens[..first.scored.len()].to_vec()
        };
        let ModelParts { model, .. } = self.model()?;
        let heads = self.summary()?.heads;
        let uses = self.logged_uses()?;
        self.program_data(&known, &model, &heads, uses.last(), &[row])
    }

    /// A program beside the `heads` of its model and what they are used as, with the values of its
    /// lines along `rows`.
    pub(crate) fn program_data(
        &self,
        known: &Known,
        model: &Decoder,
        heads: &[HeadSummary],
        uses: Option<&UsesRow>,
        rows: &[Vec<u32>],
    ) -> Result<ProgramData, Error> {
        let probe = self.probe()?.tokens;
        let mut lines = Vec::new();
        for place in &known.compiled.truth.places {
            lines.push(ProgramLine {
                variable: place.variable.clone(),
                how: place.how.clone(),
                part: place.part.to_string(),
                head: place.part.to_string().parse().ok(),
                read_by: known.readers(place.part, &place.variable),
                first_direction: place.directions.start,
                directions: place.directions.len(),
            });
        }
        let mut known_heads = Vec::new();
        for HeadSummary { head, role, .. } in heads {
            known_heads.push(known_head(known, *head, *role, uses, &probe));
        }
        let mut traces = Vec::new();
        for row in rows {
            traces.push(self.program_trace(known, model, row)?);
        }
        Ok(ProgramData {
            name: known.code.name().to_owned(),
            answers: known.answers().map(ToOwned::to_owned),
            length: known.code.layout().length(),
            lines,
            heads: known_heads,
            untouched: uses.map(|uses| uses.untouched),
            traces,
        })
    }

    fn program_trace(
        &self,
        known: &Known,
        model: &Decoder,
        row: &[u32],
    ) -> Result<ProgramTrace, Error> {
        let end = Site::Block(model.blocks.len() - 1, BlockSite::ResidPost);
        let seen = model
            .activations(token_tensor(&[row], &self.device), &[end])
            .map_err(no_room)?;
        let stream = numbers(seen.tensor::<3>(end)); // [positions · d_model]
        let mut values = Vec::new();
        for place in &known.compiled.truth.places {
            let at_positions = stream.chunks(model.config().d_model);
            values.push(at_positions.map(|x| known.value_in(place, x)).collect());
        }
        let name = |&token: &u32| known.compiled.vocabulary[token as usize].clone();
        Ok(ProgramTrace {
            tokens: row.iter().map(name).collect(),
            values,
        })
    }
}

fn known_head(
    known: &Known,
    head: HeadName,
    role: Role,
    uses: Option<&UsesRow>,
    probe: &[Vec<u32>],
) -> KnownHead {
    let place = known.compiled.truth.computed_by(head);
    // A head whose weights are 0 attends evenly: it must look like nothing.
    let expected = known.expected_role(head, probe).unwrap_or(Expected::NoRole);
    let (must_look_like, role_is) = role_of_program(expected, role);
    let alone = uses.and_then(|uses| {
        let is_head_alone = |set: &&HeadsUse| set.heads == [head] && set.name != HeadSet::Layer;
        uses.uses.iter().find(is_head_alone)?.ablated
    });
    let untouched = uses.map(|uses| uses.untouched);
    let falls = alone
        .zip(untouched)
        .map(|(left, all)| left.accuracy < all.accuracy);
    let use_is = falls.map(|falls| match (place.is_some(), falls) {
        (true, true) => RoleVerdict::Found,
        (true, false) => RoleVerdict::Missed,
        (false, true) => RoleVerdict::FalselyFound,
        (false, false) => RoleVerdict::RightlyNone,
    });
    KnownHead {
        head,
        computes: place.map(|place| place.variable.clone()),
        looks_like: role,
        must_look_like,
        role_is,
        used_as: uses.and_then(|uses| uses.used_as(head)),
        without: alone,
        use_is: use_is.map(|is| is.in_words().to_owned()),
    }
}

/// The role that a head must have, in words, and whether the role that it has is right, where the
/// program says so.
pub(crate) fn role_of_program(expected: Expected, role: Role) -> (String, Option<String>) {
    let must_be = match expected {
        Expected::Role(measure) => measure.name(),
        Expected::NoRole => "no role",
        Expected::Open => "open",
    };
    let verdict = expected.verdict(role).map(|is| is.in_words().to_owned());
    (must_be.to_owned(), verdict)
}

/// The lines, the heads, and the values along a sequence.
fn program_printout(program: &ProgramData) -> Printout {
    let answers = match &program.answers {
        Some(answers) => format!(" answers {answers}"),
        None => " is a random program".to_owned(),
    };
    let lines = program.lines.iter().map(|line| {
        vec![
            format!("{} = {}", line.variable, line.how),
            line.part.clone(),
            line.read_by.join(", "),
        ]
    });
    let shown = program.heads.iter().filter(|head| !head.is_rightly_idle());
    let heads = shown.map(|head| {
        vec![
            head.head.to_string(),
            or_dash(head.computes.clone()),
            head.looks_like.to_string(),
            head.must_look_like.clone(),
            or_dash(head.role_is.clone()),
            number_or_dash(head.without.map(|left| left.accuracy), 2),
            or_dash(head.use_is.clone()),
            or_dash(head.used_as.clone()),
        ]
    });
    let columns = [
        "head",
        "computes",
        "looks like",
        "must be",
        "role is",
        "without",
        "use is",
        "used as",
    ];
    let mut printout = Printout::new()
        .prose(format!(
            "{}{answers}. Inputs have up to {} tokens behind <s>. A line is a variable; query.x is x at the query, the \
             other names of a condition are those at a key.",
            program.name, program.length
        ))
        .table(Table::new(&["line", "computed by", "read by"], lines).text_columns(3))
        .prose(
            "The heads, what was found of them, and whether it is right. looks like: the role on the probe. must be: the \
             role whose targets, and nothing else, the program selects at every query of the probe; no role: none at half \
             of them; open: in between. without: accuracy with the head off, which must fall if the head computes \
             something.",
        )
        .table(Table::new(&columns, heads).text_columns(5).first_to_go(&["used as"]))
        .prose(idle_text(program));
    for trace in &program.traces {
        printout = printout
            .prose(
                "The values of the lines, as the residual stream holds them behind the last layer:",
            )
            .table(trace_table(program, trace));
    }
    printout
}

/// The heads whose weights are 0 and of which nothing was found.
fn idle_text(program: &ProgramData) -> String {
    let idle = program.heads.iter().filter(|head| head.is_rightly_idle());
    let names: Vec<String> = idle.map(|head| head.head.to_string()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "Heads with weights 0, of which rightly nothing was found: {}.",
        names.join(" ")
    )
}

/// A row a line, a column a token.
fn trace_table(program: &ProgramData, trace: &ProgramTrace) -> Table {
    let header: Vec<&str> = ["line"]
        .into_iter()
        .chain(trace.tokens.iter().map(String::as_str))
        .collect();
    let rows = program
        .lines
        .iter()
        .zip(&trace.values)
        .map(|(line, values)| {
            let mut row = vec![line.variable.clone()];
            row.extend(values.iter().cloned());
            row
        });
    Table::new(&header, rows)
}
