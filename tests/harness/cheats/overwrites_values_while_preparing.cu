// tries: changes the matrix before it multiplies
// caught by: digest of vals
// status: wrong_result
//! op spmv
//! format csr
//! derived copy real nnz
//! prepare ready grid=ceildiv(nnz,256) block=256
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void ready(int nnz, const real* vals, real* copy) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nnz) copy[i] = ((real*)vals)[i] = 1;
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, const real* copy) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum * copy[0];
}
