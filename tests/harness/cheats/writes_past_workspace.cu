// tries: uses more scratch memory than it has asked for
// caught by: guard
// status: memory_fault
//! op spmv
//! format csr
//! workspace partial real rows
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, real* partial) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  partial[row + 8] = sum;
  y[row] = partial[row + 8];
}
