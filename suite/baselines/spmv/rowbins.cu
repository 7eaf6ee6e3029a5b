//! op spmv
//! format csr_bins
//! launch short_rows grid=(rows>0)*bin_blocks block=256
//! launch long_rows grid=(longest>PIECE)*max_pieces block=256

// Rows are listed by length (as in ACSR: Ashari, Sedaghati, Eisenlohr, Parthasarathy and
// Sadayappan, 2014): those of up to 4 << c entries get 1 << c neighbouring threads each, all in one
// launch in which every block has one kind of rows. Rows of more than PIECE entries are cut into
// pieces with a block each, which add to y. Within a list rows keep their order.

#define ALL 0xffffffffu

template <int LANES>
__device__ void add_row(int unit, int end, const int* __restrict__ units,
                        const int* __restrict__ row_ptr, const int* __restrict__ col_idx,
                        const real* __restrict__ vals, const real* __restrict__ x,
                        real* __restrict__ y) {
  const int lane = threadIdx.x % LANES;
  int row = 0, from = 0, to = 0;
  if (unit < end) row = units[unit], from = row_ptr[row], to = row_ptr[row + 1];
  real sum = 0;
#pragma unroll 4
  for (int k = from + lane; k < to; k += LANES) sum += vals[k] * x[col_idx[k]];
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (lane == 0 && unit < end) y[row] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
    short_rows(const int* __restrict__ bins, const int* __restrict__ units,
               const int* __restrict__ piece_from, const int* __restrict__ row_ptr,
               const int* __restrict__ col_idx, const real* __restrict__ vals,
               const real* __restrict__ x, real* __restrict__ y) {
  const int block = blockIdx.x;
  if (block >= bins[8 + CLASSES]) return;
  int kind = 0;
  while (kind < LONG && block >= bins[8 + kind + 1]) ++kind;
  const int lanes = kind < LONG ? 1 << kind : 1;
  const int unit = bins[kind] + ((block - bins[8 + kind]) * 256 + (int)threadIdx.x) / lanes;
  const int end = bins[kind + 1];
  switch (kind) {
    case 0:
      return add_row<1>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 1:
      return add_row<2>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 2:
      return add_row<4>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 3:
      return add_row<8>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 4:
      return add_row<16>(unit, end, units, row_ptr, col_idx, vals, x, y);
    case 5:
      return add_row<32>(unit, end, units, row_ptr, col_idx, vals, x, y);
  }
  // The first piece of a long row clears what all its pieces add to.
  if (unit < end && piece_from[unit - bins[LONG]] == row_ptr[units[unit]]) y[units[unit]] = 0;
}

extern "C" __global__ void __launch_bounds__(256)
    long_rows(const int* __restrict__ bins, const int* __restrict__ units,
              const int* __restrict__ piece_from, const int* __restrict__ row_ptr,
              const int* __restrict__ col_idx, const real* __restrict__ vals,
              const real* __restrict__ x, real* __restrict__ y) {
  __shared__ real warp_sums[8];
  const int unit = bins[LONG] + blockIdx.x;
  if (unit >= bins[CLASSES]) return;
  const int row = units[unit], from = piece_from[blockIdx.x];
  const int length = min(PIECE, row_ptr[row + 1] - from);
  real sum = 0;
#pragma unroll 8
  for (int k = threadIdx.x; k < length; k += 256) {
    sum += __ldcs(vals + from + k) * x[__ldcs(col_idx + from + k)];
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = 0;
  for (int warp = 0; warp < 8; ++warp) sum += warp_sums[warp];
  atomicAdd(y + row, sum);
}
