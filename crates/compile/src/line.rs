//! A line of a program in words: what a reader would have written.
//!
//! A program keeps the table of a function, not the function. So the function is looked for among
//! those that readers know: equality, a distance, an order, a constant. A table that is none of them
//! is called a table.

use crate::{
    Program,
    variable::{Domain, Id, Operation, Selector, Which},
};

/// Tables with more groups of values than these are not listed.
const MOST_LISTED: usize = 6;

impl Program {
    /// What variable `id` is: `tokens at the only key with indices = query.indices − 1, else '-'`.
    /// `query.` speaks of a variable at the query, the others of those at the key.
    pub(crate) fn in_words(&self, id: Id) -> String {
        let name = |id: Id| self.variables[id].name.as_str();
        match &self.variables[id].operation {
            Operation::Tokens => "the token".to_owned(),
            Operation::Indices => "the position, from 0 behind <s>".to_owned(),
            Operation::Map { from, table } => {
                let groups = groups(table.len(), |value| self.value(id, table[value]));
                let listed = listed(&groups, &self.values(*from));
                format!("from {}: {listed}", name(*from))
            }
            Operation::MapTwo { left, right, table } => self.map_two(id, [*left, *right], table),
            Operation::Classes { from, table } => self.classes(id, *from, table),
            Operation::Fetch {
                choice,
                values,
                otherwise,
                ..
            } => {
                let with = self.with(&choice.selector);
                let which = match choice.which {
                    Which::Only => "only",
                    Which::Latest => "latest",
                    Which::First => "first",
                };
                let otherwise = self.value(id, *otherwise);
                format!(
                    "{} at the {which} key{with}, else {otherwise}",
                    name(*values)
                )
            }
            Operation::Mean {
                selector,
                values,
                numbers,
                otherwise,
            } => {
                let as_number = |value: usize| number(numbers[value]);
                let numbers = listed(&groups(numbers.len(), as_number), &self.values(*values));
                let with = self.with(selector);
                let (values, otherwise) = (name(*values), number(*otherwise));
                format!("mean of {values} ({numbers}) over the keys{with}, else {otherwise}")
            }
            Operation::Rest { selector } => {
                format!("1/(1 + w), w the number of keys{}", self.with(selector))
            }
        }
    }

    /// ` with tokens = query.tokens`, the condition on a key; nothing where all are selected.
    fn with(&self, selector: &Selector) -> String {
        let queries = format!("query.{}", self.variables[selector.queries].name);
        let relation = Relation {
            left: &self.variables[selector.keys].name,
            lefts: self.names(selector.keys),
            right: &queries,
            rights: self.names(selector.queries),
            holds: &|key, query| selector.table[query][key],
        };
        match relation.in_words() {
            Words::Always => String::new(),
            Words::Never => " that never occur".to_owned(),
            Words::If(condition) => format!(" with {condition}"),
            Words::Table => {
                let (rows, columns) = (relation.rights.len(), relation.lefts.len());
                let keys = relation.left;
                format!(" with {keys} that fits {queries} by a table of {rows} × {columns}")
            }
        }
    }

    fn map_two(&self, id: Id, [left, right]: [Id; 2], table: &[Vec<usize>]) -> String {
        let outputs = self.names(id);
        let [left_name, right_name] = [left, right].map(|id| self.variables[id].name.as_str());
        if let [first, second] = outputs {
            let relation = Relation {
                left: left_name,
                lefts: self.names(left),
                right: right_name,
                rights: self.names(right),
                holds: &|left, right| outputs[table[left][right]] == "true",
            };
            let is_flag = first == "true" || second == "true";
            if let (true, Words::If(condition)) = (is_flag, relation.in_words()) {
                return format!("true if {condition}, else false");
            }
        }
        // Of each value of one variable: a constant, or the other variable.
        let rows = self.names(left).len();
        let columns = self.names(right).len();
        let by_left = |row: usize| {
            let of_row = |column: usize| table[row][column];
            self.constant_or_other(id, right, columns, of_row)
        };
        let by_right = |column: usize| {
            let of_column = |row: usize| table[row][column];
            self.constant_or_other(id, left, rows, of_column)
        };
        for (by, count, told) in [
            (left, rows, &by_left as &dyn Fn(usize) -> Option<String>),
            (right, columns, &by_right),
        ] {
            let told: Option<Vec<String>> = (0..count).map(told).collect();
            if let Some(told) = told {
                let groups = groups(count, |value| told[value].clone());
                let listed = listed(&groups, &self.values(by));
                return format!("from {}: {listed}", self.variables[by].name);
            }
        }
        format!("from {left_name} and {right_name} by a table of {rows} × {columns}")
    }

    /// What a function of variable `of`, with `count` values, gives as variable `id`: always the same
    /// value, or the variable `of` itself.
    fn constant_or_other(
        &self,
        id: Id,
        of: Id,
        count: usize,
        class: impl Fn(usize) -> usize,
    ) -> Option<String> {
        if (1..count).all(|value| class(value) == class(0)) {
            return Some(self.value(id, class(0)));
        }
        let (outputs, inputs) = (self.names(id), self.names(of));
        let is_same = (0..count).all(|value| outputs[class(value)] == inputs[value]);
        is_same.then(|| self.variables[of].name.clone())
    }

    /// `is a ≤ 0.25 → low, else high`
    fn classes(&self, id: Id, from: Id, table: &[usize]) -> String {
        let name = &self.variables[from].name;
        let Domain::Numbers(Some(numbers)) = &self.variables[from].domain else {
            unreachable!("classes are of listed numbers")
        };
        let is_width = |(&class, &number): (&usize, &f64)| {
            let width = self.names(id)[class].parse::<u32>();
            width.is_ok_and(|width| (number * (1.0 + f64::from(width)) - 1.0).abs() < 1e-9)
        };
        if table.iter().zip(numbers).all(is_width) {
            return format!("w of {name} = 1/(1 + w)");
        }
        let mut parts = Vec::new();
        for (at, class) in table.iter().enumerate() {
            match table.get(at + 1) {
                Some(next) if next == class => {}
                Some(_) => {
                    let upper = number(numbers[at]);
                    parts.push(format!("≤ {upper} → {}", self.value(id, *class)));
                }
                None => parts.push(format!("else {}", self.value(id, *class))),
            }
        }
        if parts.len() > MOST_LISTED {
            return format!(
                "from {name}: {} values in {} classes",
                numbers.len(),
                parts.len()
            );
        }
        format!("from {name}: {}", parts.join(", "))
    }

    fn names(&self, id: Id) -> &[String] {
        self.variables[id].domain.names()
    }

    fn value(&self, id: Id, class: usize) -> String {
        quoted(&self.names(id)[class])
    }

    fn values(&self, id: Id) -> Vec<String> {
        self.names(id).iter().map(|name| quoted(name)).collect()
    }
}

/// Whether the first integer stands so to the second.
type Order = fn(&i64, &i64) -> bool;

/// A relation of two values, which are given by their numbers.
struct Relation<'a> {
    left: &'a str,
    lefts: &'a [String],
    right: &'a str,
    rights: &'a [String],
    holds: &'a dyn Fn(usize, usize) -> bool,
}

/// A relation that readers know.
enum Words {
    Always,
    Never,
    If(String),
    Table,
}

impl Relation<'_> {
    fn in_words(&self) -> Words {
        let Self { left, right, .. } = self;
        if self.is(|_, _| true) {
            return Words::Always;
        }
        if self.is(|_, _| false) {
            return Words::Never;
        }
        if let Some(condition) = self.on_one_side() {
            return Words::If(condition);
        }
        if self.is(|left, right| self.lefts[left] == self.rights[right]) {
            return Words::If(format!("{left} = {right}"));
        }
        let (Some(lefts), Some(rights)) = (integers(self.lefts), integers(self.rights)) else {
            return Words::Table;
        };
        let orders: [(&str, Order); 4] = [
            ("<", i64::lt),
            ("≤", i64::le),
            (">", i64::gt),
            ("≥", i64::ge),
        ];
        for (sign, order) in orders {
            if self.is(|left, right| order(&lefts[left], &rights[right])) {
                return Words::If(format!("{left} {sign} {right}"));
            }
        }
        let distances = lefts.iter().flat_map(|l| rights.iter().map(move |r| l - r));
        for distance in distances {
            if self.is(|left, right| lefts[left] - rights[right] == distance) {
                let sign = if distance < 0 { '−' } else { '+' };
                return Words::If(format!("{left} = {right} {sign} {}", distance.abs()));
            }
        }
        Words::Table
    }

    /// A condition on the left variable alone, or on the right one.
    fn on_one_side(&self) -> Option<String> {
        if self.is(|left, _| (self.holds)(left, 0)) {
            let holds: Vec<bool> = (0..self.lefts.len())
                .map(|left| (self.holds)(left, 0))
                .collect();
            return Some(one_of(self.left, self.lefts, &holds));
        }
        if self.is(|_, right| (self.holds)(0, right)) {
            let holds: Vec<bool> = (0..self.rights.len())
                .map(|right| (self.holds)(0, right))
                .collect();
            return Some(one_of(self.right, self.rights, &holds));
        }
        None
    }

    fn is(&self, known: impl Fn(usize, usize) -> bool) -> bool {
        let mut pairs = (0..self.lefts.len())
            .flat_map(|left| (0..self.rights.len()).map(move |right| (left, right)));
        pairs.all(|(left, right)| (self.holds)(left, right) == known(left, right))
    }
}

/// `tokens = a or b`, `letter ≠ '-', d`, `record > 0`
fn one_of(variable: &str, names: &[String], holds: &[bool]) -> String {
    let of = |wanted: bool| -> Vec<String> {
        let named = names
            .iter()
            .zip(holds)
            .filter(|(_, holds)| **holds == wanted);
        named.map(|(name, _)| quoted(name)).collect()
    };
    let (inside, outside) = (of(true), of(false));
    if let Some(bound) = bound(names, holds) {
        return format!("{variable} {bound}");
    }
    if outside.len() < inside.len() && outside.len() <= MOST_LISTED {
        return format!("{variable} ≠ {}", outside.join(", "));
    }
    if inside.len() <= MOST_LISTED {
        return format!("{variable} = {}", inside.join(" or "));
    }
    format!("{variable} = one of {} values", inside.len())
}

/// `> 0` for three or more numbers, of which one side holds.
fn bound(names: &[String], holds: &[bool]) -> Option<String> {
    let numbers = integers(names)?;
    let held = numbers.iter().zip(holds).filter(|(_, holds)| **holds);
    let left_out = numbers.iter().zip(holds).filter(|(_, holds)| !**holds);
    let (held, left_out): (Vec<i64>, Vec<i64>) = (
        held.map(|(n, _)| *n).collect(),
        left_out.map(|(n, _)| *n).collect(),
    );
    let (least, most) = (held.iter().min()?, held.iter().max()?);
    let (least_out, most_out) = (left_out.iter().min()?, left_out.iter().max()?);
    if held.len() > 1 && least > most_out {
        return Some(format!("> {most_out}"));
    }
    if held.len() > 1 && most < least_out {
        return Some(format!("< {least_out}"));
    }
    None
}

/// What is the same, with the values that it is the same for, in the order of the first of them.
fn groups(count: usize, told: impl Fn(usize) -> String) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for value in 0..count {
        let told = told(value);
        match groups.iter_mut().find(|(known, _)| *known == told) {
            Some((_, values)) => values.push(value),
            None => groups.push((told, vec![value])),
        }
    }
    groups
}

/// `a → true, else false`: the largest group last, without its values.
fn listed(groups: &[(String, Vec<usize>)], names: &[String]) -> String {
    let largest = (0..groups.len()).max_by_key(|&at| groups[at].1.len());
    let Some(largest) = largest else {
        return String::new();
    };
    if groups.len() == 1 {
        return format!("always {}", groups[0].0);
    }
    let listed: usize = groups.iter().map(|(_, values)| values.len()).sum();
    if listed - groups[largest].1.len() > MOST_LISTED {
        return format!("{listed} values to {}", groups.len());
    }
    let mut parts = Vec::new();
    for (at, (told, values)) in groups.iter().enumerate() {
        if at != largest {
            let values: Vec<&str> = values.iter().map(|&value| names[value].as_str()).collect();
            parts.push(format!("{} → {told}", values.join(" or ")));
        }
    }
    parts.push(format!("else {}", groups[largest].0));
    parts.join(", ")
}

fn integers(names: &[String]) -> Option<Vec<i64>> {
    names.iter().map(|name| name.parse().ok()).collect()
}

/// A sign that could be read as one of the sentence stands in quotes.
fn quoted(name: &str) -> String {
    let is_word = name.chars().any(char::is_alphanumeric);
    if is_word {
        name.to_owned()
    } else {
        format!("'{name}'")
    }
}

/// At most three digits behind the point.
fn number(number: f64) -> String {
    let rounded = (number * 1e3).round() / 1e3;
    // No minus before a zero.
    (rounded + 0.0).to_string()
}
