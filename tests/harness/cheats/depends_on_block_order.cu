// tries: lets later blocks add to what earlier ones have written, and waits for nobody
// caught by: order of threads
// status: wrong_result
//! op spmv
//! format csr
//! let HALF 64
//! launch k grid=2*ceildiv(rows,HALF) block=HALF

extern "C" __global__ void k(int rows, const int* row_ptr, const int* col_idx, const real* vals,
                             const real* x, real* y) {
  bool later = blockIdx.x >= gridDim.x / 2;
  int row = blockIdx.x % (gridDim.x / 2) * HALF + threadIdx.x;
  if (row >= rows) return;
  int begin = row_ptr[row], end = row_ptr[row + 1];
  int from = later ? begin : min(begin + 1, end), to = later ? min(begin + 1, end) : end;
  real sum = 0;
  for (int p = from; p < to; ++p) sum += vals[p] * x[col_idx[p]];
  if (later)
    y[row] += sum;
  else
    y[row] = sum;
}
