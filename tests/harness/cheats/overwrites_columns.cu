// tries: sorts nothing and breaks the indices for the next program
// caught by: digest of col_idx
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64
//! launch done grid=1 block=1

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}

extern "C" __global__ void done(const int* col_idx) { ((int*)col_idx)[3] ^= 1; }
