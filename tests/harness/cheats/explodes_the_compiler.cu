// tries: has the compiler expand a macro a hundred million times
// caught by: compiler
// status: compile_error
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

#define A0 +1
#define A1 A0 A0 A0 A0 A0 A0 A0 A0 A0 A0
#define A2 A1 A1 A1 A1 A1 A1 A1 A1 A1 A1
#define A3 A2 A2 A2 A2 A2 A2 A2 A2 A2 A2
#define A4 A3 A3 A3 A3 A3 A3 A3 A3 A3 A3
#define A5 A4 A4 A4 A4 A4 A4 A4 A4 A4 A4
#define A6 A5 A5 A5 A5 A5 A5 A5 A5 A5 A5
#define A7 A6 A6 A6 A6 A6 A6 A6 A6 A6 A6
#define A8 A7 A7 A7 A7 A7 A7 A7 A7 A7 A7

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum + (0 A8);
}
