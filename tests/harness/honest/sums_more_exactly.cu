// Sums in double precision, and clears its output itself before it adds to it.
//! op spmv
//! format csr
//! launch clear grid=ceildiv(rows,256) block=256
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void clear(int rows, real* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows) y[i] = 0;
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  double sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += (double)vals[p] * x[col_idx[p]];
  y[row] += (real)sum;
}
