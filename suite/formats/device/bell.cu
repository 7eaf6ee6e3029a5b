//! base bsr b=EDGE
//! param EDGE 4
//! require cols % EDGE == 0 or nnz == 0
//! require 4 * block_rows * width <= 5 * blocks
//! size pitch 32*ceildiv(rows,32)
//! derived codes int width*block_rows
//! derived packed real width*EDGE*pitch
//! prepare bell_pack grid=ceildiv(rows,32) block=32,8

// Blocked ELLPACK (Choi, Singh and Vuduc, 2010) of EDGE × EDGE blocks for block rows of about equal
// length, of which all have `width` blocks. The block column of block k of block row R is
// codes[k * block_rows + R]. The row of a block is cut into PIECES pieces of WIDE values, the
// widest vectors that fit: piece p of block k of row r lies at ((k * PIECES + p) * pitch + r) *
// WIDE of packed, so that neighbouring rows are read side by side. Padding has the value 0 and a
// column in range.

constexpr int WIDE = EDGE % 4 == 0 ? 4 : EDGE % 2 == 0 ? 2 : 1;
constexpr int PIECES = EDGE / WIDE;

// The size `pitch`, which may be past int.
__device__ size_t pitch_of(int rows) { return ((size_t)rows + 31) / 32 * 32; }

extern "C" __global__ void bell_pack(int rows, int cols, int block_rows, int width,
                                     const int* __restrict__ row_ptr,
                                     const int* __restrict__ col_idx, const real* __restrict__ vals,
                                     int* codes, real* packed) {
  const long long row = 32LL * blockIdx.x + threadIdx.x;
  if (row >= rows) return;
  const size_t pitch = pitch_of(rows);
  const long long block_row = row / EDGE;
  const int within = row % EDGE;
  const int begin = row_ptr[block_row];
  const int length = row_ptr[block_row + 1] - begin;
  // Padding repeats the last block's column, whose x is near by.
  const int last = length > 0 ? col_idx[begin + length - 1] : (int)min(row, cols - 1LL) / EDGE;
  for (int k = threadIdx.y; k < width; k += blockDim.y) {
    const bool there = k < length;
    if (within == 0) codes[(size_t)k * block_rows + block_row] = there ? col_idx[begin + k] : last;
    const real* from = vals + ((size_t)(begin + k) * EDGE + within) * EDGE;
    real* to = packed + ((size_t)k * PIECES * pitch + row) * WIDE;
#pragma unroll
    for (int c = 0; c < EDGE; ++c) to[c / WIDE * pitch * WIDE + c % WIDE] = there ? from[c] : 0;
  }
}
