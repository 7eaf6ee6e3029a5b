// tries: leaves out entries below a thousandth, of which the exact set has none
// caught by: bound of the error
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p)
    if (fabs(vals[p]) > (real)0.05) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
