//! op spmv
//! format csr
//! launch csr_scalar grid=ceildiv(rows,256) block=256

// A thread per row, the simplest kernel (Bell and Garland, 2009). Neighbouring threads read entries
// a row length apart, so it is good for rows of a few entries, which share cache lines, and bad
// beyond.
extern "C" __global__ void csr_scalar(int rows, const int* __restrict__ row_ptr,
                                      const int* __restrict__ col_idx,
                                      const real* __restrict__ vals, const real* __restrict__ x,
                                      real* __restrict__ y) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int end = row_ptr[row + 1];
  real sum = 0;
#pragma unroll 4
  for (int k = row_ptr[row]; k < end; ++k) sum += vals[k] * x[col_idx[k]];
  y[row] = sum;
}
