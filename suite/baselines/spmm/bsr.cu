//! op spmm
//! choose EDGE 2 3
//! format bsr b=EDGE
//! require cols < 2147483600 and longest <= 65536
//! launch bsr_vec4 grid=(n%4==0)*ceildiv(block_rows,32)*ceildiv(n,32) block=8,32
//! launch bsr_any grid=(n%4!=0)*ceildiv(block_rows,8)*ceildiv(n,32) block=32,8

// A block row a thread, for small blocks: each row of B is loaded once for all rows of the block,
// so a block costs EDGE vectors of B instead of one for each of its entries. Two blocks are in
// flight. Larger blocks need the teams of bsr_tile.cu.

#if EDGE == 3
struct Piece {
  real x, y, z;
};
__device__ void unpack(const Piece& v, real (&to)[3]) { to[0] = v.x, to[1] = v.y, to[2] = v.z; }
#else
typedef real2 Piece;
__device__ void unpack(const real2& v, real (&to)[2]) { to[0] = v.x, to[1] = v.y; }
#endif

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

// One Vec of columns of a block row. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int slices = (length + blockDim.x - 1) / blockDim.x;  // they share the matrix in the L2
  const int at = blockIdx.x % slices * blockDim.x + threadIdx.x;
  const long long block_row = (long long)(blockIdx.x / slices) * blockDim.y + threadIdx.y;
  if (block_row >= block_rows || at >= length) return;
  B += at, C += at;

  Vec sum[EDGE];
#pragma unroll
  for (int i = 0; i < EDGE; ++i) sum[i] = Vec();
  const int end = row_ptr[block_row + 1];
#pragma unroll 2
  for (int k = row_ptr[block_row]; k < end; ++k) {
    const int col = col_idx[k] * EDGE;
    const Piece* block = (const Piece*)(vals + (size_t)k * (EDGE * EDGE));
    Vec dense[EDGE];
#pragma unroll
    for (int j = 0; j < EDGE; ++j) {
      // A row past the matrix meets only values of 0, so that any other will do.
      dense[j] = B[(size_t)min(col + j, cols - 1) * length];
    }
#pragma unroll
    for (int i = 0; i < EDGE; ++i) {
      real value[EDGE];
      unpack(block[i], value);
#pragma unroll
      for (int j = 0; j < EDGE; ++j) axpy(value[j], dense[j], sum[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < EDGE; ++i) {
    const long long row = block_row * EDGE + i;
    if (row < rows) put(C + (size_t)row * length, sum[i]);
  }
}

extern "C" __global__ void __launch_bounds__(256, sizeof(real) == 4 ? 3 : 2)
    bsr_vec4(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
             const int* __restrict__ col_idx, const real* __restrict__ vals,
             const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, cols, n, block_rows, row_ptr, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void bsr_any(int rows, int cols, int n, int block_rows,
                                   const int* __restrict__ row_ptr, const int* __restrict__ col_idx,
                                   const real* __restrict__ vals, const real* __restrict__ B,
                                   real* __restrict__ C) {
  multiply(rows, cols, n, block_rows, row_ptr, col_idx, vals, B, C);
}
