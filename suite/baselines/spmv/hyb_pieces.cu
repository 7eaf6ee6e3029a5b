//! op spmv
//! format csr
//! choose WIDTH 4 16
//! let PIECE 512
//! let TAIL_BLOCKS 4
//! require rows*WIDTH<=8*nnz+1048576
//! derived ell_col int ceildiv(rows,32)*32*WIDTH
//! derived ell_val real ceildiv(rows,32)*32*WIDTH
//! derived ell_len uchar ceildiv(rows,32)*32 zero
//! derived counts int 2 zero
//! derived long_row int min(rows,nnz//(WIDTH+1))+1
//! derived long_first int min(rows,nnz//(WIDTH+1))+1
//! derived piece_start int nnz//PIECE+min(rows,nnz//(WIDTH+1))+1
//! derived piece_size int nnz//PIECE+min(rows,nnz//(WIDTH+1))+1
//! workspace piece_sum real nnz//PIECE+min(rows,nnz//(WIDTH+1))+1
//! prepare split grid=ceildiv(rows,256) block=256
//! prepare cut grid=min(rows,4*sms) block=256
//! launch hyb_pieces grid=TAIL_BLOCKS*sms*(longest>WIDTH)+ceildiv(rows,256) block=256
//! launch add_tails grid=(longest>WIDTH)*sms block=256

// HYB with a balanced tail: the first WIDTH entries of each row lie as ELLPACK in slices of 32
// rows, what is longer is cut into pieces of equal size, a warp each, while other blocks do the
// regular part (Bell and Garland, 2009, with the tail split as in merge-based work). A second
// launch adds the pieces of each long row, so nothing is added by atomics. Made for short rows
// beside a few dense ones.

// The regular part goes to slices; a row with more announces its pieces.
extern "C" __global__ void split(int rows, const int* __restrict__ row_ptr,
                                 const int* __restrict__ col_idx, const real* __restrict__ vals,
                                 int* __restrict__ ell_col, real* __restrict__ ell_val,
                                 unsigned char* __restrict__ ell_len, int* __restrict__ counts,
                                 int* __restrict__ long_row, int* __restrict__ long_first) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int begin = row_ptr[row], length = row_ptr[row + 1] - begin;
  const size_t slot = (size_t)(row / 32) * (32 * WIDTH) + row % 32;
  ell_len[row] = (unsigned char)min(length, WIDTH);
  for (int k = 0; k < WIDTH; ++k) {
    ell_col[slot + k * 32] = k < length ? col_idx[begin + k] : 0;
    ell_val[slot + k * 32] = k < length ? vals[begin + k] : real(0);
  }
  if (length <= WIDTH) return;
  const int at = atomicAdd(&counts[0], 1);
  long_row[at] = (int)row;
  long_first[at] = atomicAdd(&counts[1], (length - WIDTH + PIECE - 1) / PIECE);
}

// A block per long row lists its pieces.
extern "C" __global__ void cut(const int* __restrict__ row_ptr, const int* __restrict__ counts,
                               const int* __restrict__ long_row, const int* __restrict__ long_first,
                               int* __restrict__ piece_start, int* __restrict__ piece_size) {
  const int many = counts[0];
  for (int at = blockIdx.x; at < many; at += gridDim.x) {
    const int row = long_row[at];
    const int begin = row_ptr[row] + WIDTH, length = row_ptr[row + 1] - begin;
    for (int i = threadIdx.x; i < (length + PIECE - 1) / PIECE; i += blockDim.x) {
      piece_start[long_first[at] + i] = begin + i * PIECE;
      piece_size[long_first[at] + i] = min(PIECE, length - i * PIECE);
    }
  }
}

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
    const int pieces = (row_ptr[row + 1] - row_ptr[row] - WIDTH + PIECE - 1) / PIECE;
    real sum = 0;
    for (int i = threadIdx.x % 32; i < pieces; i += 32) sum += piece_sum[long_first[at] + i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[row] += sum;
  }
}
