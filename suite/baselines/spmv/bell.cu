//! op spmv
//! choose EDGE 2 3 4 8 16
//! let KEEP 24
//! format bell EDGE=EDGE
//! launch multiply grid=ceildiv(rows,128) block=128

// Blocked ELLPACK (Choi, Singh and Vuduc, 2010): a thread per row reads its row of each block as
// vectors, and the threads of a warp lie side by side. Nothing stands before the values, no sums
// cross threads, one column index serves a block. About KEEP megabytes are read as if for keeps, so
// that they lie in the L2 when the matrix is multiplied again, spread over the blocks so that L2
// and memory work at the same time.

constexpr int BATCH = EDGE <= 4 ? 4 : EDGE <= 8 ? 2 : 1;  // blocks under way at once
constexpr int SHARES = 32;                                // the kept part is a multiple of 1/SHARES

// Blocks a multiprocessor: as many as the registers of a batch let be.
constexpr int RESIDENT = sizeof(real) == 8 || EDGE == 8 ? 8 : EDGE <= 3 ? 12 : 10;

template <bool KEPT, typename T>
__device__ T fetch(const T* from) {
  return KEPT ? *from : __ldcs(from);
}

template <bool KEPT>
__device__ void load(const real* from, real (&to)[1]) {
  to[0] = fetch<KEPT>(from);
}

template <bool KEPT>
__device__ void load(const real* from, real (&to)[2]) {
  const real2 v = fetch<KEPT>((const real2*)from);
  to[0] = v.x, to[1] = v.y;
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

// What a thread needs of its row, with the pointers at its first block. A thread beyond the last
// row has the last one, but not inside.
struct Row {
  bool inside;
  int width, block_rows;
  size_t pitch;
  const int* codes;
  const real* packed;
  const real* x;
};

// Sum over COUNT blocks, all of which are under way at once.
template <bool KEPT, int COUNT>
__device__ real sum_blocks(const Row& row, int first) {
  int col[COUNT];
  real v[COUNT][PIECES][WIDE];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const size_t k = first + i;
    col[i] = EDGE * fetch<KEPT>(row.codes + k * row.block_rows);
#pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      load<KEPT>(row.packed + (k * PIECES + p) * row.pitch * WIDE, v[i][p]);
    }
  }
  // The compiler has to leave all loads of the matrix before this point, and all of x behind it.
  // Mixed, the values would be asked for only when the columns have come.
  __syncwarp();
  real sum = 0;
  if (row.inside) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
      for (int p = 0; p < PIECES; ++p) {
        real u[WIDE];
        load<true>(row.x + (col[i] + p * WIDE), u);
#pragma unroll
        for (int c = 0; c < WIDE; ++c) sum += v[i][p][c] * u[c];
      }
    }
  }
  return sum;
}

// A row: first what makes no whole batch, then the whole batches.
template <bool KEPT>
__device__ real sum_row(const Row& row) {
  const int first = row.width % BATCH;
  real sum = 0;
  if (first == 1) sum = sum_blocks<KEPT, 1>(row, 0);
  if constexpr (BATCH > 2) {
    if (first == 2) sum = sum_blocks<KEPT, 2>(row, 0);
    if (first == 3) sum = sum_blocks<KEPT, 3>(row, 0);
  }
#pragma unroll 1
  for (int k = first; k < row.width; k += BATCH) sum += sum_blocks<KEPT, BATCH>(row, k);
  return sum;
}

extern "C" __global__ void __launch_bounds__(128, RESIDENT)
    multiply(int rows, int block_rows, int width, size_t pitch, const int* __restrict__ codes,
             const real* __restrict__ packed, const real* __restrict__ x, real* __restrict__ y) {
  const long long at = 128LL * blockIdx.x + threadIdx.x;
  const int mine = (int)min(at, rows - 1LL);
  const float megabytes = (float)width * EDGE * pitch * sizeof(real) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  const Row row = {at < rows, width, block_rows, pitch, codes + mine / EDGE,
                   packed + (size_t)mine * WIDE, x};
  const real sum = kept ? sum_row<true>(row) : sum_row<false>(row);
  if (row.inside) y[mine] = sum;
}
