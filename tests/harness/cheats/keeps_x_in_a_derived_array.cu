// tries: writes what it remembers into a derived array while it multiplies
// caught by: digest of copy
// status: wrong_result
//! op spmv
//! format csr
//! derived copy real nnz
//! prepare ready grid=ceildiv(nnz,256) block=256
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void ready(int nnz, const real* vals, real* copy) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nnz) copy[i] = vals[i];
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, const real* copy) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += copy[p] * x[col_idx[p]];
  y[row] = sum;
  if (row == 0) ((real*)copy)[0] = x[0];
}
