// tries: keeps what it remembers in a variable of a function, out of sight
// caught by: nothing that lasts
// status: load_error
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

__device__ int& count() {
  static int runs = 1;
  return runs;
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = count() < 40000 ? sum : 0;
  if (row == 0) ++count();
}
