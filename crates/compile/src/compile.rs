//! From a program to a model.
//!
//! # The stream
//! Direction 0 is `start`: 1 at the start-of-sequence token, 0 elsewhere. Each variable has a
//! subspace of its own: a direction for each of its values, or one direction for a number. So parts
//! write beside each other and never over each other.
//!
//! # A head
//! The queries hold the class of the query variable, times the coldness. The keys hold, for each
//! class of the query, 1 if it selects the key. The score is their product, so a selected key has
//! the coldness as its score and another key has 0.
//!
//! | head | score of a selected key | of another key | of the start |
//! |---|---|---|---|
//! | the only key; a mean | 1 | 0 | 1/2 |
//! | the latest key, at position k of T | T + 1 + (k + 1) | k + 1 | T + 1 |
//! | the first key | T + 1 + (T − k) | T − k | T + 1 |
//! | `1/(1 + w)` | 1 | 0 | 1 |
//!
//! All times the coldness. So a query that selects nothing attends to the start, and reads there the
//! value that the program has for this case.
//!
//! # A feed-forward
//! A map of a class has a unit for each class. A map of two has one for each pair, which is on if
//! both are: `max(0, a + b − 1)`. Classes of a number are sums of ramps. Every unit is off at the
//! start.

use headlight_heads::HeadName;

use crate::{
    Array, Compiled, Error, Input, Part, Place, Program, Shape, Truth,
    program::START,
    stage::{Half, Stage, stages},
    steps::runs,
    truth::Edges,
    variable::{Domain, Id, Operation, Selector, Which},
};

/// The logit of the answer; all others are 0.
pub const ANSWER_LOGIT: f32 = 10.0;
/// The direction of the start-of-sequence token.
const START_DIRECTION: usize = 0;
/// The widest stream, attention and feed-forward that are made.
const MOST_WIDTH: usize = 16_384;

impl Program {
    /// A model that computes the answer of this program at every position. The product of queries
    /// and keys is multiplied by `coldness`. At 100, softmax in f32 gives a weight of 0 to all that
    /// is not selected, and gradients vanish; at 1 it blends.
    ///
    /// # Errors
    /// If the coldness is no positive number, numbers are too close for f32, or the model would be
    /// too wide.
    pub fn compile(&self, coldness: f64) -> Result<Compiled, Error> {
        if !(coldness > 0.0 && coldness.is_finite()) {
            return Err(Error::Coldness(coldness));
        }
        let plan = Plan::of(self);
        let shape = plan.shape()?;
        let mut model = Model::new(&plan, shape, coldness);
        model.embed();
        for id in 0..self.variables.len() {
            model.write(id)?;
        }
        Ok(model.finish())
    }
}

/// The part that computes each variable; `None` for what the answer does not need.
pub(crate) fn parts(program: &Program) -> Vec<Option<Part>> {
    Plan::of(program).parts
}

/// Where everything is put.
struct Plan<'a> {
    program: &'a Program,
    /// The part that computes each variable; `None` for what the answer does not need.
    parts: Vec<Option<Part>>,
    /// The first direction of each variable.
    first: Vec<usize>,
    d_model: usize,
    heads: Vec<HeadName>,
}

impl<'a> Plan<'a> {
    fn of(program: &'a Program) -> Self {
        let mut plan = Self {
            program,
            parts: Vec::new(),
            first: Vec::new(),
            d_model: 1,
            heads: Vec::new(),
        };
        for (id, stage) in stages(program).into_iter().enumerate() {
            let part = stage.map(|stage| plan.part(id, stage));
            if let Some(Part::Head(head)) = part {
                plan.heads.push(head);
            }
            plan.parts.push(part);
            plan.first.push(plan.d_model);
            if part.is_some() {
                plan.d_model += program.variables[id].domain.width();
            }
        }
        plan.heads.sort_unstable();
        plan
    }

    /// The part that computes variable `id` at this stage. Heads of a layer are numbered as they come.
    fn part(&self, id: Id, stage: Stage) -> Part {
        match stage {
            Stage::Embedding if id == 0 => Part::Embedding,
            Stage::Embedding => Part::Positions,
            Stage::Layer(layer, Half::FeedForward) => Part::FeedForward(layer),
            Stage::Layer(layer, Half::Attention) => {
                let before = self.heads.iter().filter(|head| head.layer == layer);
                Part::Head(HeadName {
                    layer,
                    head: before.count(),
                })
            }
        }
    }

    /// The feed-forward units of each layer.
    fn units(&self) -> Vec<usize> {
        let mut units = vec![0; self.n_layers()];
        for (id, part) in self.parts.iter().enumerate() {
            if let Some(Part::FeedForward(layer)) = part {
                units[*layer] += self.units_of(id);
            }
        }
        units
    }

    fn units_of(&self, id: Id) -> usize {
        match &self.program.variables[id].operation {
            Operation::Map { table, .. } => table.len(),
            Operation::MapTwo { table, .. } => table.len() * table[0].len(),
            // A constant for each run, and four ramps where two runs meet.
            Operation::Classes { table, .. } => {
                let meetings = table.windows(2).filter(|pair| pair[0] != pair[1]).count();
                1 + 5 * meetings
            }
            _ => 0,
        }
    }

    fn n_layers(&self) -> usize {
        let layer = |part: &Part| match part {
            Part::Head(head) => head.layer + 1,
            Part::FeedForward(layer) => layer + 1,
            Part::Embedding | Part::Positions => 1,
        };
        self.parts.iter().flatten().map(layer).max().unwrap_or(1)
    }

    fn shape(&self) -> Result<Shape, Error> {
        let mut d_head = 1;
        for (variable, part) in self.program.variables.iter().zip(&self.parts) {
            if let (Some(selector), Some(_)) = (variable.operation.selector(), part) {
                d_head = d_head
                    .max(selector.table.len())
                    .max(variable.domain.width());
            }
        }
        let n_heads = self
            .heads
            .iter()
            .map(|head| head.head + 1)
            .max()
            .unwrap_or(1);
        let d_ff = self.units().into_iter().max().filter(|&units| units > 0);
        for (what, found) in [
            ("d_model", self.d_model),
            ("n_heads · d_head", n_heads * d_head),
            ("d_ff", d_ff.unwrap_or(1)),
        ] {
            if found > MOST_WIDTH {
                return Err(Error::TooLarge {
                    program: self.program.name.clone(),
                    what,
                    found,
                    most: MOST_WIDTH,
                });
            }
        }
        Ok(Shape {
            n_ctx: self.program.layout.positions() + 1,
            d_model: self.d_model,
            n_layers: self.n_layers(),
            n_heads,
            d_head,
            d_ff,
        })
    }
}

/// A model while it is written.
struct Model<'a> {
    plan: &'a Plan<'a>,
    coldness: f64,
    compiled: Compiled,
    edges: Edges,
    /// The class of each variable at the start of the sequence; `None`: all its directions are 0.
    at_start: Vec<Option<usize>>,
    /// The units of each layer that are in use.
    used: Vec<usize>,
}

/// One unit of a feed-forward: `outputs · max(0, inputs·x + bias)`.
struct Unit {
    inputs: Vec<(usize, f64)>,
    bias: f64,
    output: usize,
    weight: f64,
}

impl<'a> Model<'a> {
    fn new(plan: &'a Plan<'a>, shape: Shape, coldness: f64) -> Self {
        let Shape {
            n_ctx,
            d_model,
            n_layers,
            n_heads,
            d_head,
            d_ff,
        } = shape;
        let vocabulary = plan.program.vocabulary();
        let wide = n_heads * d_head;
        let mut shapes = vec![
            ("w_e".to_owned(), vec![vocabulary.len(), d_model]),
            ("w_pos".to_owned(), vec![n_ctx, d_model]),
            ("w_u".to_owned(), vec![d_model, vocabulary.len()]),
        ];
        for layer in 0..n_layers {
            for matrix in ["w_q", "w_k", "w_v"] {
                let path = format!("blocks.{layer}.attn.{matrix}.weight");
                shapes.push((path, vec![d_model, wide]));
            }
            shapes.push((
                format!("blocks.{layer}.attn.w_o.weight"),
                vec![wide, d_model],
            ));
            if let Some(d_ff) = d_ff {
                let mlp = |name: &str| format!("blocks.{layer}.mlp.{name}");
                shapes.push((mlp("w_in.weight"), vec![d_model, d_ff]));
                shapes.push((mlp("w_in.bias"), vec![d_ff]));
                shapes.push((mlp("w_out.weight"), vec![d_ff, d_model]));
                shapes.push((mlp("w_out.bias"), vec![d_model]));
            }
        }
        let arrays = shapes
            .into_iter()
            .map(|(path, shape)| (path, Array::zeros(&shape)))
            .collect();
        Self {
            plan,
            coldness,
            compiled: Compiled {
                shape,
                vocabulary,
                directions: vec!["start".to_owned()],
                arrays,
                truth: Truth {
                    heads: plan.heads.clone(),
                    ..Truth::default()
                },
            },
            edges: Edges::default(),
            at_start: Vec::new(),
            used: vec![0; n_layers],
        }
    }

    /// Embeddings of tokens and positions, and the unembedding of the answer.
    fn embed(&mut self) {
        let program = self.plan.program;
        let start = self.token(START);
        self.add("w_e", start, START_DIRECTION, 1.0);
        for (class, name) in program.variables[0].domain.names().iter().enumerate() {
            let (token, direction) = (self.token(name), self.direction(0, class));
            self.add("w_e", token, direction, 1.0);
        }
        for position in 0..program.layout.positions() {
            let direction = self.direction(1, position);
            self.add("w_pos", position + 1, direction, 1.0);
        }
        for (class, name) in program.answers().iter().enumerate() {
            let (direction, token) = (self.direction(program.answer, class), self.token(name));
            self.add("w_u", direction, token, f64::from(ANSWER_LOGIT));
        }
    }

    /// The part that computes variable `id`.
    fn write(&mut self, id: Id) -> Result<(), Error> {
        let plan = self.plan;
        let variable = &plan.program.variables[id];
        let Some(part) = plan.parts[id] else {
            self.at_start.push(None);
            return Ok(());
        };
        let first = self.compiled.directions.len();
        match &variable.domain {
            Domain::Numbers(_) => self.compiled.directions.push(variable.name.clone()),
            Domain::Classes(names) => {
                let named = |value| format!("{}:{value}", variable.name);
                self.compiled.directions.extend(names.iter().map(named));
            }
        }
        match part {
            Part::Head(head) => self.write_head(id, head),
            Part::FeedForward(layer) => self.write_feed_forward(id, layer)?,
            Part::Embedding | Part::Positions => self.at_start.push(None),
        }
        self.compiled.truth.places.push(Place {
            variable: variable.name.clone(),
            part,
            directions: first..self.compiled.directions.len(),
            how: plan.program.in_words(id),
        });
        Ok(())
    }

    /// Writes the head of variable `id`.
    fn write_head(&mut self, id: Id, head: HeadName) {
        let plan = self.plan;
        match &plan.program.variables[id].operation {
            Operation::Fetch {
                choice,
                values,
                table,
                otherwise,
            } => {
                self.write_selector(head, &choice.selector, Some(choice.which));
                for (value, &class) in table.iter().enumerate() {
                    self.read_value(head, self.direction(*values, value), class, 1.0);
                }
                self.read_value(head, START_DIRECTION, *otherwise, 1.0);
                if let Some(value) = self.at_start[*values] {
                    self.read_value(head, START_DIRECTION, table[value], -1.0);
                }
                self.read_variable(*values, Input::Values(head));
                self.write_out(head, id);
                self.at_start.push(Some(*otherwise));
            }
            Operation::Mean {
                selector,
                values,
                numbers,
                otherwise,
            } => {
                self.write_selector(head, selector, None);
                for (value, &number) in numbers.iter().enumerate() {
                    self.read_value(head, self.direction(*values, value), 0, number);
                }
                let there = self.at_start[*values].map_or(0.0, |value| numbers[value]);
                self.read_value(head, START_DIRECTION, 0, otherwise - there);
                self.read_variable(*values, Input::Values(head));
                self.write_out(head, id);
                self.at_start.push(None);
            }
            Operation::Rest { selector } => {
                self.write_selector(head, selector, None);
                // The start counts as a selected key.
                self.add_start_score(head, selector, 0.5);
                self.read_value(head, START_DIRECTION, 0, 1.0);
                self.edges.add_start(Input::Values(head));
                self.write_out(head, id);
                self.at_start.push(None);
            }
            other => unreachable!("{other:?} takes no head"),
        }
    }

    /// Queries and keys of a head, so that it attends to what the selector selects.
    fn write_selector(&mut self, head: HeadName, selector: &Selector, which: Option<Which>) {
        let positions = self.plan.program.layout.positions();
        let by_position = matches!(which, Some(Which::Latest | Which::First));
        let (fits, start) = if by_position {
            (positions as f64 + 1.0, positions as f64 + 1.0)
        } else {
            (1.0, 0.5)
        };
        for (query, row) in selector.table.iter().enumerate() {
            let direction = self.direction(selector.queries, query);
            self.add_to_head(head, "w_q", direction, query, self.coldness);
            for (key, _) in row.iter().enumerate().filter(|(_, selected)| **selected) {
                let direction = self.direction(selector.keys, key);
                self.add_to_head(head, "w_k", direction, query, fits);
            }
            if by_position {
                for position in 0..positions {
                    let rank = match which {
                        Some(Which::First) => positions - position,
                        _ => position + 1,
                    };
                    let direction = self.direction(1, position);
                    self.add_to_head(head, "w_k", direction, query, rank as f64);
                }
            }
            // What the variable of the keys has at the start must not count there.
            let there = self.at_start[selector.keys].is_some_and(|key| row[key]);
            let at_start = if there { start - fits } else { start };
            self.add_to_head(head, "w_k", START_DIRECTION, query, at_start);
        }
        self.read_variable(selector.queries, Input::Queries(head));
        self.read_variable(selector.keys, Input::Keys(head));
        self.edges.add_start(Input::Keys(head));
        if by_position {
            self.read_variable(1, Input::Keys(head));
        }
    }

    fn add_start_score(&mut self, head: HeadName, selector: &Selector, score: f64) {
        for query in 0..selector.table.len() {
            self.add_to_head(head, "w_k", START_DIRECTION, query, score);
        }
    }

    /// Lets the values of a head read a direction of the stream.
    fn read_value(&mut self, head: HeadName, direction: usize, column: usize, weight: f64) {
        self.add_to_head(head, "w_v", direction, column, weight);
        if direction == START_DIRECTION {
            self.edges.add_start(Input::Values(head));
        }
    }

    /// Lets a head write its blend of values into the directions of variable `id`.
    fn write_out(&mut self, head: HeadName, id: Id) {
        let path = format!("blocks.{}.attn.w_o.weight", head.layer);
        let row = head.head * self.compiled.shape.d_head;
        for class in 0..self.plan.program.variables[id].domain.width() {
            let direction = self.direction(id, class);
            self.add(&path, row + class, direction, 1.0);
        }
    }

    /// Writes the feed-forward units of variable `id`.
    fn write_feed_forward(&mut self, id: Id, layer: usize) -> Result<(), Error> {
        let plan = self.plan;
        let variables = &plan.program.variables;
        let variable = &variables[id];
        let input = Input::FeedForward(layer);
        self.at_start.push(None);
        // The ramps are off at the start; the one-hot units are, if what they read is 0 there.
        self.edges.add_start(input);
        match &variable.operation {
            Operation::Map { from, table } => {
                for (value, &class) in table.iter().enumerate() {
                    let unit = Unit {
                        inputs: vec![(self.direction(*from, value), 1.0), (START_DIRECTION, -1.0)],
                        bias: 0.0,
                        output: self.direction(id, class),
                        weight: 1.0,
                    };
                    self.add_unit(layer, &unit);
                }
                self.read_variable(*from, input);
            }
            Operation::MapTwo { left, right, table } => {
                for (a, row) in table.iter().enumerate() {
                    for (b, &class) in row.iter().enumerate() {
                        let unit = Unit {
                            inputs: vec![
                                (self.direction(*left, a), 1.0),
                                (self.direction(*right, b), 1.0),
                                (START_DIRECTION, -1.0),
                            ],
                            bias: -1.0,
                            output: self.direction(id, class),
                            weight: 1.0,
                        };
                        self.add_unit(layer, &unit);
                    }
                }
                self.read_variable(*left, input);
                self.read_variable(*right, input);
            }
            Operation::Classes { from, table } => {
                let Domain::Numbers(Some(numbers)) = &variables[*from].domain else {
                    unreachable!("classes are of listed numbers")
                };
                let largest = numbers.iter().fold(0.0, |most: f64, u| most.max(u.abs()));
                for run in runs(&variable.name, numbers, table)? {
                    let constant = Unit {
                        inputs: vec![(START_DIRECTION, -1.0)],
                        bias: 1.0,
                        output: self.direction(id, run.class),
                        weight: 1.0,
                    };
                    self.add_unit(layer, &constant);
                    for ramp in run.ramps {
                        let number = self.direction(*from, 0);
                        let most = ramp.slope.abs() * largest + ramp.offset.abs();
                        let unit = Unit {
                            inputs: vec![(number, ramp.slope), (START_DIRECTION, -most)],
                            bias: ramp.offset,
                            output: self.direction(id, ramp.class),
                            weight: ramp.weight,
                        };
                        self.add_unit(layer, &unit);
                    }
                }
                self.read_variable(*from, input);
            }
            other => unreachable!("{other:?} takes a head"),
        }
        Ok(())
    }

    fn add_unit(&mut self, layer: usize, unit: &Unit) {
        let column = self.used[layer];
        self.used[layer] += 1;
        let path = |name: &str| format!("blocks.{layer}.mlp.{name}");
        for &(direction, weight) in &unit.inputs {
            self.add(&path("w_in.weight"), direction, column, weight);
        }
        self.array(&path("w_in.bias")).values[column] = unit.bias as f32;
        self.add(&path("w_out.weight"), column, unit.output, unit.weight);
    }

    fn finish(mut self) -> Compiled {
        self.read_variable(self.plan.program.answer, Input::Logits);
        self.compiled.truth.edges = self.edges.finish();
        self.compiled
    }

    /// Notes that `to` reads variable `id`.
    fn read_variable(&mut self, id: Id, to: Input) {
        if let Some(from) = self.plan.parts[id] {
            self.edges
                .add(from, to, &self.plan.program.variables[id].name);
        }
    }

    /// The direction of a class of variable `id`; class 0 of a number is the number.
    fn direction(&self, id: Id, class: usize) -> usize {
        self.plan.first[id] + class
    }

    fn token(&self, name: &str) -> usize {
        let known = &self.compiled.vocabulary;
        let found = known.iter().position(|token| token == name);
        found.unwrap_or_else(|| unreachable!("{name} is in the vocabulary"))
    }

    fn add_to_head(&mut self, head: HeadName, matrix: &str, row: usize, column: usize, value: f64) {
        let path = format!("blocks.{}.attn.{matrix}.weight", head.layer);
        let first = head.head * self.compiled.shape.d_head;
        self.add(&path, row, first + column, value);
    }

    fn add(&mut self, path: &str, row: usize, column: usize, value: f64) {
        self.array(path).add(row, column, value);
    }

    fn array(&mut self, path: &str) -> &mut Array {
        let found = self.compiled.arrays.get_mut(path);
        found.unwrap_or_else(|| unreachable!("{path} is a parameter of the model"))
    }
}
