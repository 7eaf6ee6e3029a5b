// tries: does at most 1024 entries of a row: a smaller problem than was asked (CUDA-L1's smaller
//   hyperparameters)
// caught by: exact input set
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  int end = min(row_ptr[row + 1], row_ptr[row] + 1024);
  for (int p = row_ptr[row]; p < end; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
