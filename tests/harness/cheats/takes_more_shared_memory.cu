// tries: asks for more shared memory than there is, and works with what is left of it (the field
//   guide's overflow)
// caught by: loader
// status: load_error
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64 shared=262144

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  extern __shared__ real much[];
  much[threadIdx.x] = sum;
  y[row] = much[threadIdx.x];
}
