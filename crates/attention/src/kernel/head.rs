//! One head's rows as products read them.

use burn::backend::flex::FlexTensor;
use headlight_vector::{Matrix, WIDEST};

/// The matrix `[seq, width]` of one head of a tensor `[batch, heads or kv_heads, seq, width]` with
/// any strides.
pub(crate) fn matrix(tensor: &FlexTensor, batch: usize, head: usize, heads: usize) -> Matrix<'_> {
    let layout = tensor.layout();
    let (shape, strides) = (layout.shape(), layout.strides());
    let stride = |axis: usize| strides[axis] as usize;
    let own_head = head / (heads / shape[1]);
    Matrix {
        data: tensor.storage::<f32>(),
        start: layout.start_offset() + batch * stride(0) + own_head * stride(1),
        rows: shape[2],
        columns: shape[3],
        row_stride: stride(2),
        column_stride: stride(3),
    }
}

/// The tensor itself, or a copy if one of its axes runs backwards.
pub(crate) fn in_order(tensor: FlexTensor) -> FlexTensor {
    if tensor.layout().has_positive_strides() {
        tensor
    } else {
        tensor.to_contiguous()
    }
}

/// The matrix as a right factor: rows of whole vectors, filled up with zeros. `copy` holds the
/// numbers if the matrix is not of this kind already.
pub(crate) fn in_vectors<'a>(matrix: Matrix<'a>, copy: &'a mut Vec<f32>) -> Matrix<'a> {
    if matrix.column_stride == 1 && matrix.columns.is_multiple_of(WIDEST) {
        return matrix;
    }
    let width = matrix.columns.next_multiple_of(WIDEST);
    copy.clear();
    copy.resize(matrix.rows * width, 0.0);
    for (i, row) in copy.chunks_exact_mut(width).enumerate() {
        for (j, x) in row[..matrix.columns].iter_mut().enumerate() {
            *x = matrix.at(i, j);
        }
    }
    Matrix::dense(copy, matrix.rows, width)
}
