// Derives a list of the filled rows with an atomic counter: its order changes from run to run.
//! op spmv
//! format csr
//! init zero
//! derived filled_rows int rows
//! derived count int 1 zero
//! prepare collect grid=ceildiv(rows,64) block=64
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void collect(int rows, const int* row_ptr, int* filled_rows, int* count) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows && row_ptr[row] < row_ptr[row + 1]) filled_rows[atomicAdd(count, 1)] = row;
}

extern "C" __global__ void k(const int* row_ptr, const int* col_idx, const real* vals,
                             const real* x, real* y, const int* filled_rows, const int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= *count) return;
  int row = filled_rows[i];
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
