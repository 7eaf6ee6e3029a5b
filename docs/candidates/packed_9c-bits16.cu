//! op spmv
//! let BITS 16
//! let TEAM 1
//! let KEEP 24
//! let BATCH 2
//! format csr
//! require 4 * rows * longest <= 5 * nnz
//! require BITS == 32 or cols <= 65536 or (reach < 32768 and rows < cols + 32768)
//! derived codes ushort BITS//16*longest*32*ceildiv(rows,32)
//! derived packed real longest*32*ceildiv(rows,32)
//! prepare pack grid=ceildiv(rows,32) block=32,8
//! launch multiply grid=ceildiv(rows*TEAM,128) block=128

// ELLPACK (Bell and Garland, 2009) for rows of about equal length, packed so that a thread takes
// four neighbouring entries of a row at once, and the threads of a warp lie side by side: few loads
// bring many bytes. No row pointer stands before them. Columns have 16 bits where all are below
// 65536 or near the diagonal: a quarter less to read. TEAM threads share a row; about KEEP
// megabytes are read as if for keeps, so that they lie in the L2 when the matrix is multiplied
// again, spread over the blocks so that L2 and memory work at the same time.

// Group g of row r, four entries, begins at 4 * (g * pitch + r). The up to three entries beyond
// full groups lie entry by entry: entry k of row r at k * pitch + r.

constexpr int SHARES = 32;  // the kept part is a multiple of 1/SHARES

#if BITS == 16
typedef unsigned short Code;
typedef ushort4 Code4;
#else
typedef int Code;
typedef int4 Code4;
#endif

// The column that code 0 stands for.
__device__ int origin(int row, int cols) { return BITS == 32 || cols <= 65536 ? 0 : row - 32768; }

__device__ size_t pitch_of(int rows) { return ((size_t)rows + 31) / 32 * 32; }

extern "C" __global__ void pack(int rows, int cols, int longest, const int* __restrict__ row_ptr,
                                const int* __restrict__ col_idx, const real* __restrict__ vals,
                                unsigned short* codes, real* packed) {
  const long long row = 32LL * blockIdx.x + threadIdx.x;
  const size_t pitch = pitch_of(rows);
  const int begin = row < rows ? row_ptr[row] : 0;
  const int length = row < rows ? row_ptr[row + 1] - begin : 0;
  // Padding repeats the last column, whose x is near by; an empty row's lies on the diagonal.
  const int last = length > 0 ? col_idx[begin + length - 1] : (int)min(row, cols - 1LL);
  for (int k = threadIdx.y; k < longest; k += blockDim.y) {
    const bool grouped = k < longest / 4 * 4;
    const size_t slot = grouped ? 4 * (k / 4 * pitch + row) + k % 4 : k * pitch + row;
    ((Code*)codes)[slot] = (k < length ? col_idx[begin + k] : last) - origin(row, cols);
    packed[slot] = k < length ? vals[begin + k] : 0;
  }
}

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

template <bool KEPT>
__device__ real share(const Row& row, int member) {
  const int groups = row.longest / 4;
  real sum = 0;
  int g = member;
  for (; g + (BATCH - 1) * TEAM < groups; g += BATCH * TEAM) sum += sum_groups<KEPT, BATCH>(row, g);
  for (; g < groups; g += TEAM) sum += sum_groups<KEPT, 1>(row, g);
#pragma unroll 3
  for (int k = groups * 4 + member; k < row.longest; k += TEAM) {
    const size_t slot = k * row.pitch + row.number;
    sum += fetch<KEPT>(row.packed + slot) * row.x[fetch<KEPT>(row.codes + slot)];
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
