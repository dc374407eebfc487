//! False-positive rates and sensitivity of the roles, on heads whose programs are known. The numbers
//! stand in `crates/heads/src/role_rate.rs`; here they are measured anew.

mod common;

use std::fmt::Write as _;

use burn::tensor::Device;
use common::{inputs_of, task_of};
use headlight_compile::{Draft, Error, Layout, Program, programs, select};
use headlight_heads::{
    Measure, Role, RoleRate,
    role_rate::{DRAWS, SHARES},
};
use headlight_lens::{LayerPattern, RoleTargets, TargetWeights, role_checks, score_layer_on};
use headlight_watch::{Known, Watched, compiled::decoder, probe};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{Beta, ContinuousCDF};

const LENGTH: usize = 24;
const PROGRAMS: usize = 50;
const INPUTS: usize = 64;

fn known(code: Program) -> Known {
    Known::compiled(code, 100.0).unwrap()
}

/// The first 50 random programs that have a head.
fn population() -> Vec<Known> {
    let random = (0..).map(|seed| format!("random_{seed}"));
    let compiled = random.map(|name| known(programs::named(&name, Some(LENGTH)).unwrap()));
    let with_heads = compiled.filter(|known| !known.compiled.truth.heads.is_empty());
    with_heads.take(PROGRAMS).collect()
}

/// The role of each head on the probe; with the start of the sequence left out, or as a token like
/// others.
fn roles(known: &Known, without_start: bool) -> Vec<Role> {
    let model = decoder(&known.compiled, &Device::flex()).unwrap();
    let probe = probe(&task_of(&known.code), LENGTH + 1, 0);
    let watched = Watched::probe(&probe).with_start(without_start);
    watched.observe(&model, &Device::flex()).unwrap().roles()
}

/// `[found, missed, falsely found, rightly left]` heads, and programs with a false one of those that
/// could have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    heads: [usize; 4],
    programs: [usize; 2],
}

fn counts(population: &[Known], measure: Measure, roles: &[Vec<Role>]) -> Counts {
    let mut all = Counts::default();
    for (known, roles) in population.iter().zip(roles) {
        let inputs = inputs_of(&known.code, INPUTS);
        let mut heads = [0; 4];
        // A head whose weights are 0 attends evenly: it is no negative.
        for &head in &known.compiled.truth.heads {
            let variable = &known.compiled.truth.computed_by(head).unwrap().variable;
            let role = roles[head.layer * known.compiled.shape.n_heads + head.head];
            let has_it = role == Role::Of(measure);
            let fidelity = known.fidelity(variable, measure, &inputs);
            match (fidelity, has_it) {
                (1.0, true) => heads[0] += 1,
                (1.0, false) => heads[1] += 1,
                (..0.5, true) => heads[2] += 1,
                (..0.5, false) => heads[3] += 1,
                _ => {}
            }
        }
        all.programs[0] += usize::from(heads[2] > 0);
        all.programs[1] += usize::from(heads[2] + heads[3] > 0);
        for (sum, count) in all.heads.iter_mut().zip(heads) {
            *sum += count;
        }
    }
    all
}

/// The 95 % interval of a share of `found` in `all` (Clopper & Pearson 1934).
fn clopper_pearson(found: usize, all: usize) -> [f64; 2] {
    let beta = |a: usize, b: usize, p| Beta::new(a as f64, b as f64).unwrap().inverse_cdf(p);
    let low = if found == 0 {
        0.0
    } else {
        beta(found, all - found + 1, 0.025)
    };
    let high = if found == all {
        1.0
    } else {
        beta(found + 1, all - found, 0.975)
    };
    [low, high]
}

/// A program with a head of the role, and the variable that it computes.
fn planted(measure: Measure) -> Result<(Program, &'static str), Error> {
    let layout = Layout::Prefix { length: LENGTH };
    let mut draft = Draft::new("planted", ["a", "b", "c", "d"], layout)?;
    let (tokens, indices) = (draft.tokens(), draft.indices());
    let choice = match measure {
        Measure::PreviousToken => {
            select(&indices, &indices, |key, query| key + 1 == *query).only()?
        }
        Measure::CurrentToken => select(&indices, &indices, |key, query| key == query).only()?,
        Measure::FirstToken => select(&indices, &indices, |key, _| *key == 0).only()?,
        Measure::DuplicateToken => select(&tokens, &tokens, |key, query| key == query).first(),
        Measure::Induction => return Ok((programs::induction(LENGTH)?, "next")),
        Measure::Own(_) => unreachable!("a measure of no program"),
    };
    let found = draft.aggregate("found", &choice, &tokens, "-".to_owned())?;
    Ok((draft.answer(&found)?, "found"))
}

/// Patterns of one head, `[sequence][query][key]` row by row.
struct PlantedHead {
    tokens: Vec<Vec<u32>>,
    weights: Vec<f32>,
}

impl PlantedHead {
    /// On the probe of programs over four letters.
    fn of(measure: Measure) -> Self {
        let (code, variable) = planted(measure).unwrap();
        let known = known(code);
        let letters = task_of(&programs::previous_token(LENGTH).unwrap());
        let tokens = Watched::probe(&probe(&letters, LENGTH + 1, 0)).tokens;
        let mut weights = Vec::new();
        for tokens in &tokens {
            let pattern = known.trace(tokens).unwrap().pattern(variable).unwrap();
            weights.extend(pattern.into_iter().flatten().map(|weight| weight as f32));
        }
        Self { tokens, weights }
    }

    /// The head with even attention to all but the start at the queries that `keeps` is not true of.
    fn diluted(&self, mut keeps: impl FnMut() -> bool) -> Vec<f32> {
        let length = LENGTH + 1;
        let mut weights = self.weights.clone();
        for (at, row) in weights.chunks_mut(length).enumerate() {
            let query = at % length;
            if query == 0 || keeps() {
                continue;
            }
            row.fill(0.0);
            row[1..=query].fill(1.0 / query as f32);
        }
        weights
    }

    /// What a head with these weights looks like, and whether that is sure.
    fn role(&self, weights: &[f32]) -> (Role, bool) {
        let layers =
            [LayerPattern::new([self.tokens.len(), 1, LENGTH + 1], weights).with_start(true)];
        let targets = RoleTargets::of(&layers[0], &self.tokens);
        let role = Role::of(&score_layer_on(layers[0], &targets)[0]);
        let checks = role_checks(&TargetWeights::of(&layers, &targets));
        let is_sure = match role {
            Role::Of(measure) => checks[0][&measure].is_sure,
            Role::Mixed => false,
        };
        (role, is_sure)
    }
}

/// Of the draws at each share, those that are found, and those that are sure.
fn sensitivity(measure: Measure) -> [[usize; SHARES.len()]; 2] {
    let head = PlantedHead::of(measure);
    let mut counts = [[0; SHARES.len()]; 2];
    for (at, share) in SHARES.into_iter().enumerate() {
        for draw in 0..DRAWS {
            let mut rng = ChaCha8Rng::seed_from_u64((at * DRAWS + draw) as u64);
            let weights = head.diluted(|| rng.random_bool(share as f64 / 100.0));
            let (role, is_sure) = head.role(&weights);
            let is_found = role == Role::Of(measure);
            counts[0][at] += usize::from(is_found);
            counts[1][at] += usize::from(is_found && is_sure);
        }
    }
    counts
}

#[test]
fn the_rates_in_the_code_are_these() {
    let population = population();
    let roles_of: Vec<Vec<Role>> = population.iter().map(|known| roles(known, true)).collect();
    let mut text = String::new();
    let mut rates = Vec::new();
    for measure in Measure::BUILT_IN {
        let Counts { heads, programs } = counts(&population, measure, &roles_of);
        let [low, high] =
            clopper_pearson(programs[0], programs[1]).map(|end| (end * 1e3).round() / 1e3);
        let [planted_found, planted_sure] = sensitivity(measure);
        let rate = RoleRate {
            measure,
            found: heads[0],
            missed: heads[1],
            falsely_found: heads[2],
            rightly_left: heads[3],
            programs_with_false: programs[0],
            programs: programs[1],
            low,
            high,
            planted_found,
            planted_sure,
        };
        let debug = format!("{rate:?}").replace("measure: ", "measure: Measure::");
        writeln!(text, "    {debug},").unwrap();
        rates.push(rate);
    }
    assert!(
        rates == RoleRate::all(),
        "crates/heads/src/role_rate.rs has other rates; these were measured:\n{text}"
    );
}

#[test]
fn a_head_that_mixes_its_role_into_every_query_is_found_from_half_on() {
    for measure in Measure::BUILT_IN {
        let head = PlantedHead::of(measure);
        let even = head.diluted(|| false);
        let role_at = |share: f32| {
            let mix = |(own, even): (&f32, &f32)| share * own + (1.0 - share) * even;
            let weights: Vec<f32> = head.weights.iter().zip(&even).map(mix).collect();
            head.role(&weights).0
        };
        assert_eq!(role_at(1.0), Role::Of(measure));
        assert_eq!(role_at(0.51), Role::Of(measure));
        assert_ne!(role_at(0.49), Role::Of(measure));
        assert_eq!(role_at(0.0), Role::Mixed);
    }
}

#[test]
fn with_the_start_as_a_token_heads_that_find_nothing_look_like_first_token_heads() {
    let population = population();
    let roles: Vec<Vec<Role>> = population.iter().map(|known| roles(known, false)).collect();
    let first_token = counts(&population, Measure::FirstToken, &roles);
    let expected = Counts {
        heads: [0, 0, 9, 84],
        programs: [9, 50],
    };
    assert_eq!(first_token, expected);
}
