// tries: answers not-a-number everywhere: comparisons with it are false, so |y - reference| >
//   tolerance is too (pygpubench's wildcard)
// caught by: poisoned output
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  y[row] = __int_as_float(0x7FC00000);
}
