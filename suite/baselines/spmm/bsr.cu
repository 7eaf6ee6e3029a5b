//! op spmm
//! choose EDGE 2 3 4 8
//! format bsr b=EDGE
//! require cols < 2147483600
//! launch bsr_vec4 grid=(n%4==0)*ceildiv(block_rows*max(EDGE//4,1),32)*ceildiv(n,32) block=8,32
//! launch bsr_any grid=(n%4!=0)*ceildiv(block_rows*max(EDGE//4,1),8)*ceildiv(n,32) block=32,8

// Up to four rows of a block row a thread: each row of B is loaded once for all of them, so a block
// costs EDGE vectors of B instead of one for each of its entries.

#define HEIGHT (EDGE < 4 ? EDGE : 4)  // rows a thread takes
#define WIDTH HEIGHT                  // values of a block's row that are loaded at once
#define UNROLL (EDGE < 4 ? 2 : 1)     // blocks in flight

#if EDGE == 3
struct Piece {
  real x, y, z;
};
__device__ void unpack(const Piece& v, real (&to)[3]) { to[0] = v.x, to[1] = v.y, to[2] = v.z; }
#elif EDGE == 2
typedef real2 Piece;
__device__ void unpack(const real2& v, real (&to)[2]) { to[0] = v.x, to[1] = v.y; }
#else
typedef real4 Piece;
__device__ void unpack(const real4& v, real (&to)[4]) {
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
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

// One Vec of columns of HEIGHT rows. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int slices = (length + blockDim.x - 1) / blockDim.x;  // they share the matrix in the L2
  const int at = blockIdx.x % slices * blockDim.x + threadIdx.x;
  const long long part = (long long)(blockIdx.x / slices) * blockDim.y + threadIdx.y;
  const long long block_row = part / (EDGE / HEIGHT);
  const int top = part % (EDGE / HEIGHT) * HEIGHT;  // first of the thread's rows within a block
  if (block_row >= block_rows || at >= length) return;
  B += at, C += at;

  Vec sum[HEIGHT];
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) sum[i] = Vec();
  const int end = row_ptr[block_row + 1];
#pragma unroll UNROLL
  for (int k = row_ptr[block_row]; k < end; ++k) {
    const int col = col_idx[k] * EDGE;
    const real* block = vals + (size_t)k * (EDGE * EDGE) + top * EDGE;
#pragma unroll
    for (int left = 0; left < EDGE; left += WIDTH) {
      Vec dense[WIDTH];
#pragma unroll
      for (int j = 0; j < WIDTH; ++j) {
        // A row past the matrix meets only values of 0, so that any other will do.
        dense[j] = B[(size_t)min(col + left + j, cols - 1) * length];
      }
#pragma unroll
      for (int i = 0; i < HEIGHT; ++i) {
        real value[WIDTH];
        unpack(*(const Piece*)(block + i * EDGE + left), value);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) axpy(value[j], dense[j], sum[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) {
    const long long row = block_row * EDGE + top + i;
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
