//! op spmm
//! choose EDGE 4 8
//! choose LANES 8 32
//! format bsr b=EDGE
//! require cols < 2147483600 and longest <= 65536
//! launch bsr_tile_vec4 grid=(n%4==0)*ceildiv(block_rows,256//LANES)*ceildiv(n,4*LANES) block=LANES,256//LANES
//! launch bsr_tile_any grid=(n%4!=0)*ceildiv(block_rows,256//LANES)*ceildiv(n,LANES) block=LANES,256//LANES

// A team of LANES threads takes a block row, a vector of columns each. Round by round it works off
// eight columns of its rows: all eight rows of B are loaded at once into registers, the values pass
// through shared memory, whence every thread reads whole vectors, and the next round's values are
// already on their way.

#define DEPTH 8                    // columns of a round
#define BLOCKS (DEPTH / EDGE)      // of a round
#define PIECES (EDGE * DEPTH / 4)  // vectors of values of a round
#define ALL 0xffffffffu

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

// Stores what nobody will read again: B may keep its place in the L2.
template <typename Vec>
__device__ void put(Vec* to, const Vec& value) {
  if constexpr (sizeof(Vec) % sizeof(float4) == 0) {
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Vec) / sizeof(float4)); ++i) {
      __stcs((float4*)to + i, ((const float4*)&value)[i]);
    }
  } else {
    __stcs(to, value);
  }
}

// The values of one round, PIECES vectors of which each thread has its share. Those of blocks past
// the row's end are 0.
struct Share {
  real4 piece[(PIECES + LANES - 1) / LANES];

  __device__ void load(const real* __restrict__ vals, int first, int end) {
#pragma unroll
    for (int i = 0; i < (PIECES + LANES - 1) / LANES; ++i) {
      const int at = threadIdx.x + i * LANES;
      const int block = first + (BLOCKS > 1 ? at % 2 : 0);
      const int column = BLOCKS > 1 ? 0 : at % 2 * 4;
      piece[i] = real4();
      if (at < PIECES && block < end) {
        const int in_block = at / 2 * EDGE + column;
        piece[i] = *(const real4*)(vals + (size_t)block * (EDGE * EDGE) + in_block);
      }
    }
  }

  __device__ void store(real4* tile) const {
#pragma unroll
    for (int i = 0; i < (PIECES + LANES - 1) / LANES; ++i) {
      const int at = threadIdx.x + i * LANES;
      if (at < PIECES) tile[at] = piece[i];
    }
  }
};

// One Vec of columns of EDGE rows. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C,
                         real4 (*tiles)[256 / LANES][PIECES]) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int slices = (length + LANES - 1) / LANES;
  const int at = blockIdx.x % slices * LANES + threadIdx.x;
  const long long block_row = (long long)(blockIdx.x / slices) * blockDim.y + threadIdx.y;
  const bool inside = at < length;
  int begin = 0, end = 0;
  if (block_row < block_rows) begin = row_ptr[block_row], end = row_ptr[block_row + 1];
  B += inside ? at : 0;

  Vec sum[EDGE];
#pragma unroll
  for (int i = 0; i < EDGE; ++i) sum[i] = Vec();
  const int rounds = (end - begin + BLOCKS - 1) / BLOCKS;
  const int most = __reduce_max_sync(ALL, rounds);  // of the warp's teams
  Share share;
  share.load(vals, begin, end);
  int col[BLOCKS];
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) col[b] = begin + b < end ? col_idx[begin + b] : 0;
  for (int round = 0; round < most; ++round) {
    const int next = begin + (round + 1) * BLOCKS;
    share.store(tiles[round % 2][threadIdx.y]);
    share.load(vals, next, end);
    Vec dense[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; ++j) {
      // A row past the matrix meets only values of 0, so that any other will do.
      const int from = col[j / EDGE] * EDGE + j % EDGE;
      dense[j] = B[(size_t)min(from, cols - 1) * length];
    }
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) col[b] = next + b < end ? col_idx[next + b] : 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EDGE; ++i) {
#pragma unroll
      for (int j = 0; j < DEPTH; j += 4) {
        const real4 value = tiles[round % 2][threadIdx.y][(i * DEPTH + j) / 4];
        axpy(value.x, dense[j], sum[i]);
        axpy(value.y, dense[j + 1], sum[i]);
        axpy(value.z, dense[j + 2], sum[i]);
        axpy(value.w, dense[j + 3], sum[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < EDGE; ++i) {
    const long long row = block_row * EDGE + i;
    if (row < rows && inside) put(C + (size_t)row * length + at, sum[i]);
  }
}

extern "C" __global__ void __launch_bounds__(256, sizeof(real) == 4 ? 2 : 1)
    bsr_tile_vec4(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
                  const int* __restrict__ col_idx, const real* __restrict__ vals,
                  const real* __restrict__ B, real* __restrict__ C) {
  __shared__ real4 tiles[2][256 / LANES][PIECES];
  multiply(rows, cols, n, block_rows, row_ptr, col_idx, vals, (const real4*)B, (real4*)C, tiles);
}

extern "C" __global__ void __launch_bounds__(256, sizeof(real) == 4 ? 2 : 1)
    bsr_tile_any(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
                 const int* __restrict__ col_idx, const real* __restrict__ vals,
                 const real* __restrict__ B, real* __restrict__ C) {
  __shared__ real4 tiles[2][256 / LANES][PIECES];
  multiply(rows, cols, n, block_rows, row_ptr, col_idx, vals, B, C, tiles);
}
