//! op spmv
//! format sell c=32 sigma=1024
//! launch sell grid=ceildiv(slices,8) block=256

// A warp per slice of 32 rows of about equal length (SELL-C-sigma: Kreutzer et al., 2014):
// coalesced as ELL, but a long row costs its own slice only.
extern "C" __global__ void sell(int slices, const int* __restrict__ slice_ptr,
                                const int* __restrict__ perm, const int* __restrict__ col_idx,
                                const real* __restrict__ vals, const real* __restrict__ x,
                                real* __restrict__ y) {
  const long long lane = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const int slice = lane / 32;
  if (slice >= slices) return;
  const int row = perm[lane];
  if (row < 0) return;
  const int end = slice_ptr[slice + 1];
  real sum = 0;
#pragma unroll 4
  for (int slot = slice_ptr[slice] + threadIdx.x % 32; slot < end; slot += 32) {
    sum += __ldcs(&vals[slot]) * x[__ldcs(&col_idx[slot])];
  }
  y[row] = sum;
}
