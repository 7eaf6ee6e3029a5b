//! op spmv
//! choose EDGE 4 8 16
//! let KEEP 24
//! format bsr b=EDGE
//! require longest <= 65536
//! launch bsr grid=ceildiv(block_rows*min(32,EDGE*(EDGE//4)),128) block=128

// A team of threads per block row, each with vectors of a block's values: the blocks of a row are
// neighbours in memory, so the team reads them without a gap, several blocks under way at once.
// One column index serves a whole block, and a vector of x serves EDGE rows from the L1. About KEEP
// megabytes are read as if for keeps, so that they lie in the L2 when the matrix is multiplied
// again, spread over the blocks so that L2 and memory work at once.

constexpr int WIDE = 4;                       // values a thread takes at once, all of one row
constexpr int PER_ROW = EDGE / WIDE;          // threads that share a row of a block
constexpr int HEIGHT = EDGE < 16 ? EDGE : 8;  // rows of a block that they take at once
constexpr int TEAM = HEIGHT * PER_ROW;        // threads to a block row
constexpr int ROWS = EDGE / HEIGHT;           // rows of a block to each thread
constexpr int BATCH = EDGE < 16 ? 4 : 2;      // blocks of a thread under way at once
constexpr int SHARES = 32;                    // the kept part is a multiple of 1/SHARES

template <bool KEPT, typename T>
__device__ T fetch(const T* from) {
  return KEPT ? *from : __ldcs(from);
}

template <bool KEPT>
__device__ void load(const float* from, float (&to)[4]) {
  const float4 v = fetch<KEPT>((const float4*)from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <bool KEPT>
__device__ void load(const double* from, double (&to)[4]) {
  const double2 low = fetch<KEPT>((const double2*)from);
  const double2 high = fetch<KEPT>((const double2*)from + 1);
  to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
}

// What a thread multiplies by: vals and x at its place within a block.
struct Place {
  long long cols;  // from this place on
  const int* col_idx;
  const real* vals;
  const real* x;
};

// Adds COUNT blocks from the first on, all of which are under way at once.
template <bool KEPT, int COUNT>
__device__ void add_blocks(const Place& at, int first, real (&sum)[ROWS]) {
  long long col[COUNT];
  real v[COUNT][ROWS][WIDE], u[COUNT][WIDE];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const int k = first + i;
    col[i] = (long long)fetch<KEPT>(at.col_idx + k) * EDGE;
    const real* from = at.vals + (size_t)k * (EDGE * EDGE);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) load<KEPT>(from + r * HEIGHT * EDGE, v[i][r]);
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    if (col[i] + WIDE <= at.cols) {
      load<true>(at.x + col[i], u[i]);
    } else {
#pragma unroll
      for (int c = 0; c < WIDE; ++c) u[i][c] = col[i] + c < at.cols ? at.x[col[i] + c] : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int c = 0; c < WIDE; ++c) sum[r] += v[i][r][c] * u[i][c];
    }
  }
}

// Adds the thread's blocks from k on: batches while they are full, then smaller ones.
template <bool KEPT, int COUNT>
__device__ void add_from(const Place& at, int k, int end, real (&sum)[ROWS]) {
#pragma unroll 1
  for (; end - k >= COUNT; k += COUNT) add_blocks<KEPT, COUNT>(at, k, sum);
  if constexpr (COUNT > 1) add_from<KEPT, COUNT / 2>(at, k, end, sum);
}

extern "C" __global__ void __launch_bounds__(128, 32 / sizeof(real))
    bsr(int rows, int cols, int block_rows, int blocks, const int* __restrict__ row_ptr,
        const int* __restrict__ col_idx, const real* __restrict__ vals, const real* __restrict__ x,
        real* __restrict__ y) {
  const long long block_row = (128LL * blockIdx.x + threadIdx.x) / TEAM;
  const int sharer = threadIdx.x % TEAM;
  const int within = sharer % PER_ROW * WIDE;  // first column of the thread's vector
  const float megabytes = (float)blocks * (EDGE * EDGE * sizeof(real)) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  real sum[ROWS] = {};
  if (block_row < block_rows) {
    const int end = row_ptr[block_row + 1];
    const int k = row_ptr[block_row];
    const Place at = {cols - within, col_idx, vals + sharer * WIDE, x + within};
    if (kept) {
      add_from<true, BATCH>(at, k, end, sum);
    } else {
      add_from<false, BATCH>(at, k, end, sum);
    }
  }
  // Neighbouring threads hold the same rows.
#pragma unroll
  for (int bit = 1; bit < PER_ROW; bit *= 2) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], bit);
  }
  if (within > 0) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const long long row = block_row * EDGE + sharer / PER_ROW + r * HEIGHT;
    if (row < rows) y[row] = sum[r];
  }
}
