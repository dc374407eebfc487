//! What this machine's matrix products can reach: GFLOP/s of 768×384 · 384×128, a product of the
//! benchmarked models, on one thread and on as many threads as are named. Run by `scripts/bench`.
//!
//! `cargo bench --workspace --profile dev --bench product -- 2` prints both.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its table"
)]

use std::time::Instant;

use headlight_vector::{Matrix, new_product};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [768, 384, 128];
const PRODUCTS: usize = 400;

fn main() {
    let threads = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1);
    println!("{:.0} {:.0}", best_of_rounds(1), best_of_rounds(threads));
}

fn best_of_rounds(threads: usize) -> f64 {
    (0..5)
        .map(|_| gigaflops_a_second(threads))
        .fold(0.0, f64::max)
}

fn gigaflops_a_second(threads: usize) -> f64 {
    let [rows, inner, columns] = SIZES;
    let (left, right) = (vec![0.5; rows * inner], vec![0.25; inner * columns]);
    // Threads with products of their own, as the shards have them.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a thread");
    let work = || {
        for _ in 0..PRODUCTS {
            let product = new_product(
                Matrix::dense(&left, rows, inner),
                Matrix::dense(&right, inner, columns),
                None,
            );
            assert_eq!(std::hint::black_box(product)[0], 0.125 * inner as f32);
        }
    };
    pool.install(work);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(1)
                    .build()
                    .expect("a thread");
                pool.install(work);
            });
        }
    });
    let done = (2 * rows * inner * columns * PRODUCTS * threads) as f64;
    done / started.elapsed().as_secs_f64() / 1e9
}
