//! op spmv
//! format ell
//! launch ell grid=ceildiv(rows,256) block=256

// A thread per row over column-major storage (ELLPACK on GPUs: Bell and Garland, 2009; row lengths
// to stop at, ELLPACK-R: Vazquez et al., 2011): all loads of the matrix coalesce and stream past
// the caches, which are left to x.
extern "C" __global__ void ell(int rows, int pitch, const int* __restrict__ row_len,
                               const int* __restrict__ col_idx, const real* __restrict__ vals,
                               const real* __restrict__ x, real* __restrict__ y) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int length = row_len[row];
  real sum = 0;
#pragma unroll 4
  for (int k = 0; k < length; ++k) {
    const size_t slot = (size_t)k * pitch + row;
    sum += __ldcs(&vals[slot]) * x[__ldcs(&col_idx[slot])];
  }
  y[row] = sum;
}
