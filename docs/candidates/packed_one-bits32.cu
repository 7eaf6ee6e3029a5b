//! op spmv
//
//! let KEEP 24
//! format ell4 BITS=32
//! launch multiply grid=ceildiv(rows,128) block=128

// ELLPACK (Bell and Garland, 2009) for rows of about equal length, packed so that a thread takes
// four neighbouring entries of a row at once, and the threads of a warp lie side by side: few loads
// bring many bytes. No row pointer stands before them. Columns have 16 bits where all are below
// 65536 or near the diagonal: a quarter less to read. About KEEP megabytes are read as if for
// keeps, so that they lie in the L2 when the matrix is multiplied again, spread over the blocks so
// that L2 and memory work at the same time.

constexpr int SHARES = 32;  // the kept part is a multiple of 1/SHARES
constexpr int BATCH = 4;    // groups under way at once

// As many blocks a multiprocessor as the registers of a whole batch let be.
#define BOUNDS __launch_bounds__(128, sizeof(real) == 4 ? 10 : 6)

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

// What a thread needs of its row: where its groups and where its single entries begin, and the
// column that code 0 stands for. A thread beyond the last row has the last one, but not inside.
struct Row {
  bool inside;
  int origin;
  size_t pitch;
  const Code *codes, *single_codes;
  const real *values, *singles;
  const real* x;
};

// Sum over COUNT groups from `first` on, and over `singles` entries of those behind all groups.
template <bool KEPT, int COUNT>
__device__ real sum_of(const Row& row, int first, int singles) {
  Code4 codes[COUNT + 1];
  Code code[3];
  real four[COUNT + 1][4], one[3];
  const Code* group_codes = row.codes + first * 4 * row.pitch;
  const real* group_values = row.values + first * 4 * row.pitch;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    codes[i] = fetch<KEPT>((const Code4*)(group_codes + i * 4 * row.pitch));
    fetch_four<KEPT>(group_values + i * 4 * row.pitch, four[i]);
  }
#pragma unroll
  for (int t = 0; t < 3; ++t) {
    code[t] = 0, one[t] = 0;
    if (t >= singles) continue;
    code[t] = fetch<KEPT>(row.single_codes + t * row.pitch);
    one[t] = fetch<KEPT>(row.singles + t * row.pitch);
  }
  // The compiler has to leave all loads of the matrix before this point, and all of x behind it.
  // Mixed, the values would be asked for only when the columns have come.
  __syncwarp();
  real sum = 0;
  if (row.inside) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const Code4& at = codes[i];
      sum += four[i][0] * row.x[row.origin + at.x] + four[i][1] * row.x[row.origin + at.y];
      sum += four[i][2] * row.x[row.origin + at.z] + four[i][3] * row.x[row.origin + at.w];
    }
#pragma unroll
    for (int t = 0; t < 3; ++t) {
      if (t < singles) sum += one[t] * row.x[row.origin + code[t]];
    }
  }
  return sum;
}

// A row: first what makes no whole batch, then the whole batches.
template <bool KEPT>
__device__ real sum_row(const Row& row, int longest) {
  const int groups = longest / 4, singles = longest % 4;
  int first = groups % BATCH;
  real sum = 0;
  if (groups == 0) sum = sum_of<KEPT, 0>(row, 0, singles);
  if (first == 1) sum = sum_of<KEPT, 1>(row, 0, singles);
  if (first == 2) sum = sum_of<KEPT, 2>(row, 0, singles);
  if (first == 3) sum = sum_of<KEPT, 3>(row, 0, singles);
  if (first == 0 && groups > 0 && singles > 0) first = BATCH, sum = sum_of<KEPT, BATCH>(row, 0, singles);
#pragma unroll 1
  for (int g = first; g < groups; g += BATCH) sum += sum_of<KEPT, BATCH>(row, g, 0);
  return sum;
}

extern "C" __global__ void BOUNDS multiply(int rows, int cols, int longest, size_t pitch,
                                           const unsigned short* __restrict__ codes,
                                           const real* __restrict__ packed,
                                           const real* __restrict__ x, real* __restrict__ y) {
  const long long at = 128LL * blockIdx.x + threadIdx.x;
  const int mine = (int)min(at, rows - 1LL);
  const size_t group = 4 * (size_t)mine, single = longest / 4 * 4 * pitch + mine;
  const Code* all = (const Code*)codes;
  const Row row = {at < rows,    origin(mine, cols), pitch,           all + group,
                   all + single, packed + group,     packed + single, x};
  const float megabytes = (float)longest * pitch * (sizeof(real) + sizeof(Code)) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  const real sum = kept ? sum_row<true>(row, longest) : sum_row<false>(row, longest);
  if (row.inside) y[mine] = sum;
}
