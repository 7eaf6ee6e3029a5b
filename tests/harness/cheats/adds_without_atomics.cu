// tries: lets eight threads add to one element: right when none comes between
// caught by: exact input set
// status: wrong_result
//! op spmv
//! format csr
//! init zero
//! launch k grid=ceildiv(rows*8,64) block=64

extern "C" __global__ void k(int rows, const int* row_ptr, const int* col_idx, const real* vals,
                             const real* x, real* y) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int row = thread / 8;
  if (row >= rows) return;
  for (int p = row_ptr[row] + thread % 8; p < row_ptr[row + 1]; p += 8)
    y[row] += vals[p] * x[col_idx[p]];
}
