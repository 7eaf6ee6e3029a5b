// Adds with atomics, in an order that changes from run to run, to an output that it has asked to
//   be zero.
//! op spmv
//! format csr
//! init zero
//! launch k grid=ceildiv(rows*8,64) block=64

extern "C" __global__ void k(int rows, const int* row_ptr, const int* col_idx, const real* vals,
                             const real* x, real* y) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int row = thread / 8;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row] + thread % 8; p < row_ptr[row + 1]; p += 8)
    sum += vals[p] * x[col_idx[p]];
  atomicAdd(&y[row], sum);
}
