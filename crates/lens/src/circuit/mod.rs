//! What the weights of a head do, whatever the sequence (Elhage et al. 2021, "A Mathematical
//! Framework for Transformer Circuits").
//!
//! A head is two matrices of rank `d_head`: `W_QK = W_Q·W_Kᵀ` says which token looks for which,
//! `W_OV = W_V·W_O` what is written of what is looked at. Between embedding and unembedding they
//! become tables over tokens ([`Circuits`]). A later head can read what an earlier one wrote:
//! composition.

mod circuits;
mod composition;
mod copying;
mod direction;
mod factored_matrix;
mod position;
mod random;

pub use circuits::{CircuitError, Circuits};
pub use composition::{Composition, compositions};
pub use copying::{copying_by_eigenvalues, random_copying};
pub use direction::{Direction, End, directions};
pub use factored_matrix::{Entry, FactoredMatrix, Svd};
pub use position::{FavouriteDistance, favourite_distance};
pub use random::{AgainstRandom, Random};

pub(crate) use circuits::matrix_of;
pub(crate) use random::Draws;
