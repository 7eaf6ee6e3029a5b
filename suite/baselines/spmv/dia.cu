//! op spmv
//! choose WIDE 1 4
//! choose BATCH 2 4
//! choose KEEP 0 24 40
//! format dia
//! launch dia grid=ceildiv(rows,512) block=128

// Four rows a thread, and BATCH diagonals of them under way at once before any is used, so that few
// threads keep the memory busy. No column indices are read at all: bands and stencils can come near
// copy bandwidth. Values stream past the caches, which are left to x; but of a matrix larger than
// the L2, one slice of about KEEP megabytes is read as if for keeps, and whoever multiplies again
// and again finds it in the L2. It lies spread over the blocks, so that the L2 and the memory work
// at the same time. WIDE neighbouring rows come as one vector.

constexpr int ROWS = 4;          // rows a thread
constexpr int TILE = 32 * ROWS;  // rows a warp, all neighbours
constexpr int RUN = 32 * WIDE;   // rows that a warp takes in one load
constexpr int SHARES = 32;       // the kept part is a multiple of 1/SHARES

// Where a thread's i-th row lies in the warp's tile.
__device__ constexpr int place(int lane, int i) { return i / WIDE * RUN + lane * WIDE + i % WIDE; }

template <bool KEPT, typename T>
__device__ T fetch(const T* from) {
  return KEPT ? *from : __ldcs(from);
}

template <bool KEPT>
__device__ void fetch_four(const float* from, float (&to)[ROWS]) {
  const float4 v = fetch<KEPT>((const float4*)from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <bool KEPT>
__device__ void fetch_four(const double* from, double (&to)[ROWS]) {
  const double2 low = fetch<KEPT>((const double2*)from);
  const double2 high = fetch<KEPT>((const double2*)from + 1);
  to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
}

struct Band {
  int rows, cols, diags, pitch;
  const int* offsets;
  const real* vals;
  const real* x;
};

// Adds COUNT diagonals, d and those after it, all of which are under way at once. INSIDE: they are
// inside the matrix in all rows of the warp.
template <bool KEPT, bool INSIDE, int COUNT>
__device__ void add(const Band& band, int d, int base, int lane, real (&sum)[ROWS]) {
  real v[COUNT][ROWS] = {}, u[COUNT][ROWS];
#pragma unroll
  for (int b = 0; b < COUNT; ++b) {
    const real* at = band.vals + (size_t)(d + b) * band.pitch + base;
    const long long first = (long long)base + band.offsets[d + b];
    if (WIDE == ROWS && (INSIDE || base + place(lane, 0) < band.rows)) {
      fetch_four<KEPT>(at + place(lane, 0), v[b]);  // the pitch reaches past the last row
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const bool row_there = INSIDE || base + place(lane, i) < band.rows;
      if (WIDE == 1 && row_there) v[b][i] = fetch<KEPT>(at + place(lane, i));
      const long long col = first + place(lane, i);
      const bool col_there = INSIDE || (row_there && col >= 0 && col < band.cols);
      u[b][i] = col_there ? band.x[col] : 0;
    }
  }
#pragma unroll
  for (int b = 0; b < COUNT; ++b) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) sum[i] += v[b][i] * u[b][i];
  }
}

// Adds the diagonals from d on: batches while they are full, then smaller ones.
template <bool KEPT, bool INSIDE, int COUNT>
__device__ void add_from(const Band& band, int d, int base, int lane, real (&sum)[ROWS]) {
#pragma unroll 1
  for (; d + COUNT <= band.diags; d += COUNT) add<KEPT, INSIDE, COUNT>(band, d, base, lane, sum);
  if constexpr (COUNT > 1) add_from<KEPT, INSIDE, COUNT / 2>(band, d, base, lane, sum);
}

extern "C" __global__ void __launch_bounds__(128, 32 / sizeof(real))
    dia(int rows, int cols, int diags, int pitch, int reach, const int* __restrict__ offsets,
        const real* __restrict__ vals, const real* __restrict__ x, real* __restrict__ y) {
  const int lane = threadIdx.x % 32;
  const long long base = (long long)TILE * (4 * blockIdx.x + threadIdx.x / 32);
  if (base >= rows) return;
  // No diagonal is further than reach from the main one: here, all are inside the matrix.
  const bool inside = base + TILE <= rows && base >= reach && base + TILE + reach <= cols;
  const float megabytes = (float)diags * pitch * sizeof(real) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  const Band band = {rows, cols, diags, pitch, offsets, vals, x};
  real sum[ROWS] = {0, 0, 0, 0};
  if (!inside) {
    add_from<false, false, BATCH>(band, 0, base, lane, sum);
  } else if (kept) {
    add_from<true, true, BATCH>(band, 0, base, lane, sum);
  } else {
    add_from<false, true, BATCH>(band, 0, base, lane, sum);
  }
  if (WIDE == ROWS && inside) {
    *(real4*)(y + base + place(lane, 0)) = real4{sum[0], sum[1], sum[2], sum[3]};
    return;
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    if (inside || base + place(lane, i) < rows) y[base + place(lane, i)] = sum[i];
  }
}
