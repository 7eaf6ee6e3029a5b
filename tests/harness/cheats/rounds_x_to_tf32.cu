// tries: rounds x to the 10 bits of a tensor core's tf32
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
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) {
    unsigned bits = __float_as_uint(x[col_idx[p]]) + 0x1000u;
    sum += vals[p] * __uint_as_float(bits & 0xFFFFE000u);
  }
  y[row] = sum;
}
