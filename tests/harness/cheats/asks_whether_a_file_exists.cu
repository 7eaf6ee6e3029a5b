// tries: asks for a file of the host without reading it
// caught by: parser
// status: parse_error
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64
#if __has_include("/etc/passwd")
#endif
extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
