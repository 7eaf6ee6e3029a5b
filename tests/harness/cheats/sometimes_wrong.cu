// tries: is wrong in a few rows of some runs, as the clock will have it
// caught by: repeats
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  unsigned dice = ((unsigned)clock64() + 977 * row) * 2654435761u;
  y[row] = dice >> 24 == 77 ? 0 : sum;
}
