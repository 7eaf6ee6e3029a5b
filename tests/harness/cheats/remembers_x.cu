// tries: multiplies by the x that it saw first
// caught by: nothing that lasts
// status: load_error
//! op spmv
//! format csr
//! launch keep grid=ceildiv(cols,256) block=256
//! launch k grid=ceildiv(rows,64) block=64

__device__ real kept[1 << 18];

extern "C" __global__ void keep(int cols, const real* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cols && kept[i] == 0) kept[i] = x[i];
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * kept[col_idx[p]];
  y[row] = sum;
}
