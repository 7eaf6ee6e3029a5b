//! op spmv
//! choose BITS 16 32
//! choose TEAM 1 2
//! let KEEP 24
//! let BATCH 2
//! format ell4 BITS=BITS
//! launch multiply grid=ceildiv(rows*TEAM,128) block=128

// ELLPACK (Bell and Garland, 2009) for rows of about equal length, packed so that a thread takes
// four neighbouring entries of a row at once, and the threads of a warp lie side by side: few loads
// bring many bytes. No row pointer stands before them. Columns have 16 bits where all are below
// 65536 or near the diagonal: a quarter less to read. TEAM threads share a row; about KEEP
// megabytes are read as if for keeps, so that they lie in the L2 when the matrix is multiplied
// again, spread over the blocks so that L2 and memory work at the same time.

constexpr int SHARES = 32;  // the kept part is a multiple of 1/SHARES

template <bool KEPT, typename T>
__device__ T fetch(const T* from) {
  return KEPT ? *from : __ldcs(from);
}

template <bool KEPT>
__device__ void fetch_four(const float* from, float (&to)[4]) {
  const float4 v = fetch<KEPT>((const float4*)from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <bool KEPT>
__device__ void fetch_four(const double* from, double (&to)[4]) {
  const double2 low = fetch<KEPT>((const double2*)from);
  const double2 high = fetch<KEPT>((const double2*)from + 1);
  to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
}

// The row as one member of its team sees it; x begins at the column that code 0 stands for.
struct Row {
  int number, longest;
  size_t pitch;
  const Code* codes;
  const real* packed;
  const real* x;
};

// Sum over COUNT groups, the first and every TEAM-th after it, all of which are under way at once.
template <bool KEPT, int COUNT>
__device__ real sum_groups(const Row& row, int first) {
  Code4 code[COUNT];
  real v[COUNT][4];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const size_t slot = 4 * ((first + i * TEAM) * row.pitch + row.number);
    code[i] = fetch<KEPT>((const Code4*)(row.codes + slot));
    fetch_four<KEPT>(row.packed + slot, v[i]);
  }
  real sum = 0;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    sum += v[i][0] * row.x[code[i].x] + v[i][1] * row.x[code[i].y];
    sum += v[i][2] * row.x[code[i].z] + v[i][3] * row.x[code[i].w];
  }
  return sum;
}

// One member's share of the full groups from g on: batches while they are full, then smaller ones.
template <bool KEPT, int COUNT>
__device__ real sum_from(const Row& row, int groups, int g) {
  real sum = 0;
#pragma unroll 1
  for (; g + (COUNT - 1) * TEAM < groups; g += COUNT * TEAM) sum += sum_groups<KEPT, COUNT>(row, g);
  if constexpr (COUNT > 1) sum += sum_from<KEPT, COUNT / 2>(row, groups, g);
  return sum;
}

template <bool KEPT>
__device__ real share(const Row& row, int member) {
  const int groups = row.longest / 4;
  Code code[3];
  real v[3] = {0, 0, 0};
  // The entries beyond full groups set out first, so that nobody waits for them at the end.
#pragma unroll
  for (int t = 0; t < 3; ++t) {
    const int k = groups * 4 + t;
    if (k >= row.longest || t % TEAM != member) continue;
    code[t] = fetch<KEPT>(row.codes + k * row.pitch + row.number);
    v[t] = fetch<KEPT>(row.packed + k * row.pitch + row.number);
  }
  real sum = sum_from<KEPT, BATCH>(row, groups, member);
#pragma unroll
  for (int t = 0; t < 3; ++t) {
    if (groups * 4 + t < row.longest && t % TEAM == member) sum += v[t] * row.x[code[t]];
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(128, 8)
    multiply(int rows, int cols, int longest, const unsigned short* __restrict__ codes,
             const real* __restrict__ packed, const real* __restrict__ x, real* __restrict__ y) {
  const int lane = threadIdx.x % 32;
  const long long warp = (128LL * blockIdx.x + threadIdx.x) / 32;
  const long long row = warp * (32 / TEAM) + lane % (32 / TEAM);
  const int member = lane / (32 / TEAM);
  const size_t pitch = pitch_of(rows);
  const float megabytes = (float)longest * pitch * (sizeof(real) + sizeof(Code)) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  real sum = 0;
  if (row < rows) {
    const Row mine = {(int)row, longest, pitch, (const Code*)codes, packed, x + origin(row, cols)};
    sum = kept ? share<true>(mine, member) : share<false>(mine, member);
  }
#pragma unroll
  for (int step = 32 / TEAM; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (member == 0 && row < rows) y[row] = sum;
}
