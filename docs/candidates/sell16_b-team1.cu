//! op spmv
//! let TEAM 1
//! let BATCH 2
//! let KEEP 24
//! format sell16
//! launch multiply grid=ceildiv(slices*TEAM,4) block=128

// SELL-C-sigma (Kreutzer et al., 2014) with columns of 16 bits: the k-th columns of the 32 rows of
// a slice lie close together in a mesh, whatever its numbering, and are held as distances from the
// least of them. A slice where that fails also reads 8 high bits. Four neighbouring entries of a
// row come as one vector. TEAM warps share a slice; about KEEP megabytes are read as if for keeps,
// so that they lie in the L2 when the matrix is multiplied again, spread over the blocks so that L2
// and memory work at the same time.

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

// A slice, with the pointers at its first slot.
struct Slice {
  bool there;
  int width, lane;
  const unsigned short* codes;
  const unsigned char* highs;
  const real* packed;
  const int* base;
  const real* x;
};

// Sum over COUNT groups, the first and every TEAM-th after it, all of which are under way at once.
template <bool KEPT, bool WIDE, int COUNT>
__device__ real sum_groups(const Slice& slice, int first) {
  int4 col[COUNT];
  real v[COUNT][4];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const int group = first + i * TEAM;
    const int slot = 4 * (group * 32 + slice.lane);
    const ushort4 code = fetch<KEPT>((const ushort4*)(slice.codes + slot));
    col[i] = int4{code.x, code.y, code.z, code.w};
    if (WIDE) {
      const uchar4 high = fetch<KEPT>((const uchar4*)(slice.highs + slot));
      col[i].x += high.x << 16, col[i].y += high.y << 16;
      col[i].z += high.z << 16, col[i].w += high.w << 16;
    } else {
      const int4 base = ((const int4*)slice.base)[group];
      col[i].x += base.x, col[i].y += base.y, col[i].z += base.z, col[i].w += base.w;
    }
    fetch_four<KEPT>(slice.packed + slot, v[i]);
  }
  __syncwarp();
  real sum = 0;
  if (slice.there) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      sum += v[i][0] * slice.x[col[i].x] + v[i][1] * slice.x[col[i].y];
      sum += v[i][2] * slice.x[col[i].z] + v[i][3] * slice.x[col[i].w];
    }
  }
  return sum;
}

// One member's share of the full groups from g on: batches while they are full, then smaller ones.
template <bool KEPT, bool WIDE, int COUNT>
__device__ real sum_from(const Slice& slice, int g) {
  real sum = 0;
#pragma unroll 1
  for (; g + (COUNT - 1) * TEAM < slice.width / 4; g += COUNT * TEAM) {
    sum += sum_groups<KEPT, WIDE, COUNT>(slice, g);
  }
  if constexpr (COUNT > 1) sum += sum_from<KEPT, WIDE, COUNT / 2>(slice, g);
  return sum;
}

template <bool KEPT, bool WIDE>
__device__ real share(const Slice& slice, int member) {
  const int grouped = slice.width / 4 * 4;
  int from[3], code[3];
  real v[3] = {0, 0, 0};
  // The entries beyond full groups set out first, so that nobody waits for them at the end.
#pragma unroll
  for (int t = 0; t < 3; ++t) {
    const int k = grouped + t, slot = k * 32 + slice.lane;
    if (k >= slice.width || t % TEAM != member) continue;
    from[t] = WIDE ? slice.highs[slot] : slice.base[k];
    code[t] = fetch<KEPT>(slice.codes + slot);
    v[t] = fetch<KEPT>(slice.packed + slot);
  }
  real sum = sum_from<KEPT, WIDE, BATCH>(slice, member);
#pragma unroll
  for (int t = 0; t < 3; ++t) {
    if (grouped + t >= slice.width || t % TEAM != member) continue;
    sum += v[t] * slice.x[(WIDE ? from[t] << 16 : from[t]) + code[t]];
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(128, 10)
    multiply(int slices, int slots, const int* __restrict__ slice_ptr, const int* __restrict__ perm,
             const unsigned short* __restrict__ codes, const unsigned char* __restrict__ highs,
             const real* __restrict__ packed, const int* __restrict__ bases,
             const real* __restrict__ x, real* __restrict__ y) {
  __shared__ real sums[4][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int slice = blockIdx.x * (4 / TEAM) + warp / TEAM;
  const int member = warp % TEAM;
  const float megabytes = (float)slots * (sizeof(real) + sizeof(short)) / (1 << 20);
  const bool kept = blockIdx.x % SHARES * megabytes < (float)SHARES * KEEP;
  const int row = slice < slices ? perm[slice * 32LL + lane] : -1;
  real sum = 0;
  if (slice < slices) {
    const int begin = slice_ptr[slice];
    const int width = (slice_ptr[slice + 1] - begin) / 32;
    const int* base = bases + first_base(slice, begin);
    const Slice mine = {row >= 0, width, lane, codes + begin, highs + begin, packed + begin, base, x};
    if (width > 0 && base[0] < 0) {
      sum = share<false, true>(mine, member);
    } else {
      sum = kept ? share<true, false>(mine, member) : share<false, false>(mine, member);
    }
  }
  if (TEAM > 1) {
    sums[warp][lane] = sum;
    __syncthreads();
    if (member > 0) return;
#pragma unroll
    for (int other = 1; other < TEAM; ++other) sum += sums[warp + other][lane];
  }
  if (row >= 0 && member == 0) y[row] = sum;
}
