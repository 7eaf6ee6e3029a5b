// tries: never ends
// caught by: time limit
// status: timeout
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  while (x[0] != 12345) y[row] = 0;
}
