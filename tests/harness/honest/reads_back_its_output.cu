// Writes a part of each sum to the output and adds the rest in a second kernel.
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64
//! launch rest grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; p += 2) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}

extern "C" __global__ void rest(int rows, const int* row_ptr, const int* col_idx, const real* vals,
                                const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = y[row];
  for (int p = row_ptr[row] + 1; p < row_ptr[row + 1]; p += 2) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
