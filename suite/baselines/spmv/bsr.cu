//! op spmv
//! choose EDGE 2 4 8
//! format bsr b=EDGE
//! launch bsr grid=ceildiv(block_rows*EDGE*4,256) block=256

// A team of threads per block row, each with one vector of a block's values a step: blocks of a row
// are neighbours in memory, so the team reads them without a gap. One column index serves a whole
// block, and a vector of x serves EDGE rows from the L1.

#define TEAM (EDGE * 4)
#define WIDTH (EDGE < 4 ? EDGE : 4)   // values a thread takes at once, all of one row
#define PIECES (EDGE * EDGE / WIDTH)  // threads that share a block
#define PER_ROW (EDGE / WIDTH)        // threads that share a row of a block

#if EDGE == 2
typedef real2 Piece;
#else
typedef real4 Piece;
#endif

__device__ real dot(const real2& a, const real2& b) { return a.x * b.x + a.y * b.y; }

__device__ real dot(const real4& a, const real4& b) {
  return a.x * b.x + a.y * b.y + (a.z * b.z + a.w * b.w);
}

extern "C" __global__ void bsr(int rows, int cols, int block_rows, const int* __restrict__ row_ptr,
                               const int* __restrict__ col_idx, const real* __restrict__ vals,
                               const real* __restrict__ x, real* __restrict__ y) {
  const long long block_row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / TEAM;
  const int lane = threadIdx.x % TEAM;
  const int piece = lane % PIECES;
  const int within = piece % PER_ROW * WIDTH;  // first column of the piece within the block
  real sum = 0;
  if (block_row < block_rows) {
    const int end = row_ptr[block_row + 1];
#pragma unroll 2
    for (int k = row_ptr[block_row] + lane / PIECES; k < end; k += TEAM / PIECES) {
      const real* at = vals + (size_t)k * (EDGE * EDGE) + piece * WIDTH;
      const long long col = (long long)col_idx[k] * EDGE + within;
      if (col + WIDTH <= cols) {
        sum += dot(*(const Piece*)at, *(const Piece*)(x + col));
      } else {
        for (int i = 0; col + i < cols; ++i) sum += at[i] * x[col + i];
      }
    }
  }
  // Lanes that hold the same row differ in the bits below PER_ROW and from PIECES on.
#pragma unroll
  for (int bit = 1; bit < TEAM; bit *= 2) {
    if (bit < PER_ROW || bit >= PIECES) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
  }
  const long long row = block_row * EDGE + piece / PER_ROW;
  if (lane < PIECES && piece % PER_ROW == 0 && row < rows) y[row] = sum;
}
