// tries: takes x without const and zeroes it
// caught by: digest of x
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) y[row] = x[row] = 0;
}
