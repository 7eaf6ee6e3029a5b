// tries: computes with values of 10 bits
// caught by: bound of the error
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p)
    sum += __int_as_float(__float_as_int(vals[p]) & 0xFFFFE000) * x[col_idx[p]];
  y[row] = sum;
}
