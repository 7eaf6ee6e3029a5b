// tries: accumulates in shared memory that nobody has cleared: it holds what an earlier block
//   left
// caught by: order of threads
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64 shared=256

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  extern __shared__ real partial[];
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p)
    partial[threadIdx.x] += vals[p] * x[col_idx[p]];
  y[row] = partial[threadIdx.x];
}
