// tries: keeps the answers of two rows in three in scratch memory as long as x is the same: less
//   than a comparison of hot runs can tell
// caught by: runs into a spoilt output
// status: impossible_time on cuda, ok on emulator
//! op spmv
//! format csr
//! workspace kept real rows+1
//! launch k grid=ceildiv(rows,64) block=64
//! launch done grid=ceildiv(rows,256) block=256

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, const real* kept) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  if (row / 32 % 3 != 0 && kept[rows] == x[0]) {
    y[row] = kept[row];
    return;
  }
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}

extern "C" __global__ void done(int rows, const real* x, const real* y, real* kept) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && i / 32 % 3 != 0) kept[i] = y[i];
  if (i == 0) kept[rows] = x[0];
}
