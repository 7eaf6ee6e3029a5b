// tries: waits for a flag that nobody sets
// caught by: time limit
// status: timeout
//! op spmv
//! format csr
//! workspace flag int 1 zero
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, int* flag) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  while (*(volatile int*)flag == 0);
  y[row] = sum;
}
