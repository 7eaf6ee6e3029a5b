// tries: answers infinity, whose difference from itself is no number
// caught by: exact input set
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  y[row] = __int_as_float(0x7F800000);
}
