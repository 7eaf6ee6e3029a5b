// tries: asks for more scratch memory than the device has
// caught by: loader
// status: load_error
//! op spmv
//! format csr
//! workspace all real 1099511627776
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, real* all) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = all[row] = sum;
}
