//! op spmv
//! choose SIGMA 1 1024
//! let BATCH 4
//! let KEEP 24
//! format sell c=32 sigma=SIGMA
//! require longest <= 65536
//! launch sell grid=ceildiv(slices,4) block=128

// A warp per slice of 32 rows of about equal length (SELL-C-sigma: Kreutzer et al., 2014):
// coalesced as ELL, but a long row costs its own slice only. BATCH entries of a row are under way
// before any is used. Values and columns stream past the caches, which are left to x; but about
// KEEP megabytes of them are read as if for keeps, so that they lie in the L2 when the matrix is
// multiplied again, spread over the blocks so that L2 and memory work at the same time.

constexpr int SHARES = 32;  // the kept part is a multiple of 1/SHARES

template <bool KEPT, typename T>
__device__ T fetch(const T* from) {
  return KEPT ? *from : __ldcs(from);
}

// Sum over the slots from ``slot`` on: batches of COUNT while they are full, then smaller ones.
template <bool KEPT, int COUNT>
__device__ real sum_from(int slot, int end, const int* __restrict__ col_idx,
                         const real* __restrict__ vals, const real* __restrict__ x) {
  real sum = 0;
#pragma unroll 1
  for (; slot + (COUNT - 1) * 32 < end; slot += COUNT * 32) {
    int col[COUNT];
    real value[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      col[i] = fetch<KEPT>(&col_idx[slot + i * 32]);
      value[i] = fetch<KEPT>(&vals[slot + i * 32]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += value[i] * x[col[i]];
  }
  if constexpr (COUNT > 1) sum += sum_from<KEPT, COUNT / 2>(slot, end, col_idx, vals, x);
  return sum;
}

extern "C" __global__ void __launch_bounds__(128, 12)
    sell(int rows, int slices, int slots, const int* __restrict__ slice_ptr,
         const int* __restrict__ perm, const int* __restrict__ col_idx,
         const real* __restrict__ vals, const real* __restrict__ x, real* __restrict__ y) {
  const long long lane = 128LL * blockIdx.x + threadIdx.x;
  const int slice = lane / 32;
  if (slice >= slices) return;
#if SIGMA == 1
  const int row = lane < rows ? lane : -1;
#else
  const int row = perm[lane];
#endif
  const float megabytes = (float)slots * (sizeof(real) + sizeof(int)) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  const int slot = slice_ptr[slice] + threadIdx.x % 32, end = slice_ptr[slice + 1];
  if (row < 0) return;
  y[row] = kept ? sum_from<true, BATCH>(slot, end, col_idx, vals, x)
                : sum_from<false, BATCH>(slot, end, col_idx, vals, x);
}
