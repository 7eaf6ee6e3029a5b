// tries: multiplies by an x of ones while preparing, and returns that
// caught by: exact input set
// status: wrong_result
//! op spmv
//! format csr
//! derived answer real rows zero
//! prepare ready grid=ceildiv(rows,64) block=64
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void ready(int rows, const int* row_ptr, const real* vals, real* answer) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) answer[row] += vals[p];
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, const real* answer) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  y[row] = answer[row];
}
