//! Programs and their random inputs, as every test here draws them.

use headlight_compile::Program;
use headlight_run::ProgramConfig;
use headlight_tasks::{self as tasks, RowKey, Task, Use};

/// The task that asks for the answers of a program.
pub fn task_of(code: &Program) -> tasks::Program {
    let config = ProgramConfig {
        program: code.name().to_owned(),
        length: code.layout().length(),
    };
    tasks::Program::new(&config, code.layout().positions() + 1).unwrap()
}

/// Random inputs of full length behind the start of the sequence, with the answers that a model of
/// the program reads.
pub fn inputs_of(code: &Program, rows: usize) -> Vec<Vec<u32>> {
    let task = task_of(code);
    let input = |row| {
        let sequence = task.sequence(RowKey {
            seed: 1,
            usage: Use::Validation,
            step: 0,
            row,
            rows,
        });
        sequence.tokens[..sequence.scored.len()].to_vec()
    };
    (0..rows).map(input).collect()
}
