//! op spmv
//! choose WIDTH 4 16
//! let TAIL_BLOCKS 4
//! format hyb_pieces WIDTH=WIDTH
//! workspace piece_sum real max_pieces
//! launch hyb_pieces grid=TAIL_BLOCKS*sms*(longest>WIDTH)+ceildiv(rows,256) block=256
//! launch add_tails grid=(longest>WIDTH)*sms block=256

// HYB with a balanced tail: the first WIDTH entries of each row lie as ELLPACK in slices of 32
// rows, what is longer is cut into pieces of equal size, a warp each, while other blocks do the
// regular part (Bell and Garland, 2009, with the tail split as in merge-based work). A second
// launch adds the pieces of each long row, so nothing is added by atomics. Made for short rows
// beside a few dense ones.

__device__ real warp_sum(real sum) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return sum;
}

// Up to PIECE neighbouring entries, by a warp.
__device__ real sum_piece(int size, const int* __restrict__ col_idx, const real* __restrict__ vals,
                          const real* __restrict__ x) {
  real sum = 0;
#pragma unroll 8
  for (int k = threadIdx.x % 32; k < size; k += 32)
    sum += __ldcs(vals + k) * x[__ldcs(col_idx + k)];
  return warp_sum(sum);
}

extern "C" __global__ void hyb_pieces(
    int rows, int longest, int sms, const int* __restrict__ col_idx, const real* __restrict__ vals,
    const int* __restrict__ ell_col, const real* __restrict__ ell_val,
    const unsigned char* __restrict__ ell_len, const int* __restrict__ counts,
    const int* __restrict__ piece_start, const int* __restrict__ piece_size,
    const real* __restrict__ x, real* __restrict__ piece_sum, real* __restrict__ y) {
  const int tail_blocks = longest > WIDTH ? TAIL_BLOCKS * sms : 0;
  if (blockIdx.x < tail_blocks) {
    const int warps = tail_blocks * (blockDim.x / 32);
    const int pieces = counts[1];
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < pieces; i += warps) {
      const int start = piece_start[i];
      const real sum = sum_piece(piece_size[i], col_idx + start, vals + start, x);
      if (threadIdx.x % 32 == 0) piece_sum[i] = sum;
    }
    return;
  }
  const long long row = (long long)(blockIdx.x - tail_blocks) * blockDim.x + threadIdx.x;
  const int length = row < rows ? ell_len[row] : 0;
  const int most = __reduce_max_sync(0xffffffffu, length);
  const size_t slot = (size_t)(row / 32) * (32 * WIDTH) + row % 32;
  real sum = 0;
#pragma unroll
  for (int first = 0; first < WIDTH; first += 4) {
    if (first >= most) break;
    int col[4];
    real val[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool held = first + i < most;  // the same for the whole warp
      col[i] = held ? ell_col[slot + (first + i) * 32] : 0;
      val[i] = held ? ell_val[slot + (first + i) * 32] : real(0);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + i < most) sum += val[i] * x[col[i]];
    }
  }
  if (row < rows) y[row] = sum;
}

// A warp per long row adds its pieces to the regular part.
extern "C" __global__ void add_tails(const int* __restrict__ row_ptr,
                                     const int* __restrict__ counts,
                                     const int* __restrict__ long_row,
                                     const int* __restrict__ long_first,
                                     const real* __restrict__ piece_sum, real* __restrict__ y) {
  const int many = counts[0], warps = gridDim.x * (blockDim.x / 32);
  for (int at = (blockIdx.x * blockDim.x + threadIdx.x) / 32; at < many; at += warps) {
    const int row = long_row[at];
    const int pieces = pieces_of(row_ptr[row + 1] - row_ptr[row]);
    real sum = 0;
    for (int i = threadIdx.x % 32; i < pieces; i += 32) sum += piece_sum[long_first[at] + i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[row] += sum;
  }
}
