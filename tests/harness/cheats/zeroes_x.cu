// tries: zeroes x and answers zero, which is right for whoever computes the reference afterwards
//   (KernelBench's test for changed inputs)
// caught by: digest of x
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  ((real*)x)[row % cols] = 0;
  y[row] = 0;
}
