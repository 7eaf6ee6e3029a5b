//! op spmm
//! choose EDGE 2 4 8
//! format bsr b=EDGE
//! launch bsr_vec4 grid=(n%4==0)*ceildiv(block_rows*max(EDGE//4,1),32),ceildiv(n,32) block=8,32
//! launch bsr_any grid=(n%4!=0)*ceildiv(block_rows*max(EDGE//4,1),8),ceildiv(n,32) block=32,8

// Up to four rows of a block row a thread: each row of B is loaded once for all of them, so a block
// costs EDGE vectors of B instead of one for each of its entries.

#define HEIGHT (EDGE < 4 ? EDGE : 4)  // rows a thread takes
#define WIDTH HEIGHT                  // values of a block's row that are loaded at once

#if EDGE == 2
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

// One Vec of columns of HEIGHT rows. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int block_rows, const int* __restrict__ row_ptr,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int at = blockIdx.y * blockDim.x + threadIdx.x;
  const long long part = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const long long block_row = part / (EDGE / HEIGHT);
  const int top = part % (EDGE / HEIGHT) * HEIGHT;  // first of the thread's rows within a block
  if (block_row >= block_rows || at >= length) return;
  B += at, C += at;

  Vec sum[HEIGHT];
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) sum[i] = Vec();
  const int end = row_ptr[block_row + 1];
  for (int k = row_ptr[block_row]; k < end; ++k) {
    const long long col = (long long)col_idx[k] * EDGE;
    const real* block = vals + (size_t)k * (EDGE * EDGE) + top * EDGE;
#pragma unroll
    for (int left = 0; left < EDGE; left += WIDTH) {
      Vec dense[WIDTH];
#pragma unroll
      for (int j = 0; j < WIDTH; ++j) {
        const bool inside = col + left + j < cols;  // the last block may reach past the matrix
        dense[j] = inside ? B[(size_t)(col + left + j) * length] : Vec();
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
    if (row < rows) C[(size_t)row * length] = sum[i];
  }
}

extern "C" __global__ void bsr_vec4(int rows, int cols, int n, int block_rows,
                                    const int* __restrict__ row_ptr,
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
