//! op spmm
//! choose LANES 8 32
//! choose PIECE 64 128
//! format csr_pieces PIECE=PIECE
//! workspace partial real (longest>256)*max_partials*n
//! launch pieces_vec4 grid=(n%4==0)*(ceildiv(pieces,256//LANES)+(longest>PIECE)*min(ceildiv(max_parts,8),8*sms)),ceildiv(n,4*LANES) block=LANES,256//LANES
//! launch join_vec4 grid=(n%4==0)*(longest>256)*min(max_cuts,2*sms),ceildiv(n,4*LANES) block=LANES,256//LANES
//! launch pieces_any grid=(n%4!=0)*(ceildiv(pieces,256//LANES)+(longest>PIECE)*min(ceildiv(max_parts,8),8*sms)),ceildiv(n,LANES) block=LANES,256//LANES
//! launch join_any grid=(n%4!=0)*(longest>256)*min(max_cuts,2*sms),ceildiv(n,LANES) block=LANES,256//LANES

// Work of equal size whatever the rows, without atomics. Rows of up to PIECE entries are cut into
// pieces of about PIECE entries and rows (as the merge path of Merrill and Garland, 2016, but never
// within a row), a team of LANES threads each. Longer rows are cut into parts of some hundred or
// thousand entries, a warp each; a row of several parts is joined from their sums by a second
// kernel.

#define ALL 0xffffffffu
#define GROUP (LANES < 8 ? LANES : 8)
#define NEVER 0x7fffffff
#define TEAMS (256 / LANES)  // of a block
#define WARP_TEAMS (32 / LANES)
// Few enough blocks a multiprocessor that a GROUP of rows of B is in flight in each team.
#define RESIDENT (LANES == 4 ? 5 : 4)
#define BOUNDS __launch_bounds__(256, sizeof(real) == 4 ? RESIDENT : RESIDENT / 2)

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

__device__ void add(const real& b, real& sum) { sum += b; }

__device__ void add(const real4& b, real4& sum) { axpy(1, b, sum); }

__device__ real from_lane(const real& value, int step) {
  return __shfl_down_sync(ALL, value, step);
}

__device__ real4 from_lane(const real4& value, int step) {
  real4 got;
  got.x = from_lane(value.x, step);
  got.y = from_lane(value.y, step);
  got.z = from_lane(value.z, step);
  got.w = from_lane(value.w, step);
  return got;
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

// The rows of one piece, entry after entry.
template <typename Vec>
__device__ void sum_piece(int piece, int pieces, int length, int at,
                          const int* __restrict__ first_row, const int* __restrict__ row_ptr,
                          const int* __restrict__ col_idx, const real* __restrict__ vals,
                          const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int lane = threadIdx.x;
  const bool inside = at < length;  // the others load entries for their team
  int row = 0, last = 0, begin = 0, end = 0;
  if (piece < pieces) {
    row = first_row[piece], last = first_row[piece + 1];
    begin = row_ptr[row], end = row_ptr[last];
    if (last > row) {
      const int before = row_ptr[last - 1];
      if (end - before > PIECE) --last, end = before;  // a long row, which has its own parts
    }
  }
  const int count = end - begin;
  const int most = __reduce_max_sync(ALL, count);  // of the warp's pieces
  // Where this row and the next one end, counted from the piece's first entry.
  int stop = row + 1 < last ? row_ptr[row + 1] - begin : NEVER;
  int next = row + 2 < last ? row_ptr[row + 2] - begin : NEVER;
  Vec sum = Vec();
  for (int done = 0; done < most; done += LANES) {
    int col = 0;
    real value = 0;
    if (done + lane < count) {
      col = __ldcs(col_idx + begin + done + lane);
      value = __ldcs(vals + begin + done + lane);
    }
#pragma unroll 1
    for (int first = 0; first < LANES; first += GROUP) {
      if (done + first >= most) break;
      Vec dense[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        const size_t from = (size_t)__shfl_sync(ALL, col, first + i, LANES) * length;
        dense[i] = inside && done + first + i < count ? B[from + at] : Vec();
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        const real factor = __shfl_sync(ALL, value, first + i, LANES);
        const int k = done + first + i;
        while (k == stop) {
          if (inside) put(C + (size_t)row * length + at, sum);
          sum = Vec();
          ++row;
          stop = next;
          next = row + 2 < last ? row_ptr[row + 2] - begin : NEVER;
        }
        axpy(factor, dense[i], sum);
      }
    }
  }
  for (; row < last; ++row) {
    if (inside) put(C + (size_t)row * length + at, sum);
    sum = Vec();
  }
}

// Parts of long rows, each by a whole warp: its teams take turns with the entries.
template <typename Vec>
__device__ void sum_parts(int warp, int warps, int length, int at, int parts_at_all,
                          const int* __restrict__ parts, const int* __restrict__ col_idx,
                          const real* __restrict__ vals, const Vec* __restrict__ B,
                          Vec* __restrict__ C, Vec* __restrict__ partial) {
  const int lane = (threadIdx.y * LANES + threadIdx.x) % 32;
  const int team = lane / LANES;
  const bool inside = at < length;
  for (int part = warp; part < parts_at_all; part += warps) {
    const int row = parts[3 * (size_t)part];  // or where to leave the sum, from -1 down
    const int begin = parts[3 * (size_t)part + 1];
    const int count = __reduce_max_sync(ALL, parts[3 * (size_t)part + 2]);  // the same in all
    Vec sum = Vec();
    for (int done = 0; done < count; done += 32) {
      int col = 0;
      real value = 0;
      if (done + lane < count) {
        col = __ldcs(col_idx + begin + done + lane);
        value = __ldcs(vals + begin + done + lane);
      }
#pragma unroll 1
      for (int first = 0; first < LANES; first += GROUP) {
        if (done + first * WARP_TEAMS >= count) break;
        Vec dense[GROUP];
#pragma unroll
        for (int i = 0; i < GROUP; ++i) {
          const int k = (first + i) * WARP_TEAMS + team;
          const size_t from = (size_t)__shfl_sync(ALL, col, k) * length;
          dense[i] = inside && done + k < count ? B[from + at] : Vec();
        }
#pragma unroll
        for (int i = 0; i < GROUP; ++i) {
          axpy(__shfl_sync(ALL, value, (first + i) * WARP_TEAMS + team), dense[i], sum);
        }
      }
    }
#pragma unroll
    for (int step = 16; step >= LANES; step /= 2) add(from_lane(sum, step), sum);
    if (team == 0 && inside) {
      if (row < 0) {
        partial[(size_t)(-1 - row) * length + at] = sum;
      } else {
        put(C + (size_t)row * length + at, sum);
      }
    }
  }
}

// Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int n, long long nnz, const int* __restrict__ first_row,
                         const int* __restrict__ counts, const int* __restrict__ parts,
                         const int* __restrict__ row_ptr, const int* __restrict__ col_idx,
                         const real* __restrict__ vals, const Vec* __restrict__ B,
                         Vec* __restrict__ C, Vec* __restrict__ partial) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int at = blockIdx.y * LANES + threadIdx.x;
  const int pieces = pieces_of(rows, nnz);
  const int part_blocks = gridDim.x - (pieces + TEAMS - 1) / TEAMS;  // they come first
  const int block = (int)blockIdx.x - part_blocks;
  if (block < 0) {
    const int warp = blockIdx.x * 8 + threadIdx.y / WARP_TEAMS;
    sum_parts(warp, part_blocks * 8, length, at, counts[0], parts, col_idx, vals, B, C, partial);
  } else {
    const int piece = block * TEAMS + threadIdx.y;
    sum_piece(piece, pieces, length, at, first_row, row_ptr, col_idx, vals, B, C);
  }
}

// Rows of several parts: the block's teams take turns with them.
template <typename Vec>
__device__ void join(int n, const int* __restrict__ counts, const int* __restrict__ cuts,
                     const Vec* __restrict__ partial, Vec* __restrict__ C, Vec (*sums)[LANES]) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int at = blockIdx.y * LANES + threadIdx.x;
  const int cuts_at_all = counts[1];
  for (int c = blockIdx.x; c < cuts_at_all; c += gridDim.x) {
    const int* cut = cuts + 3 * (size_t)c;
    Vec sum = Vec();
#pragma unroll 4
    for (int i = threadIdx.y; i < cut[2]; i += TEAMS) {
      if (at < length) add(partial[(size_t)(cut[1] + i) * length + at], sum);
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    for (int half = TEAMS / 2; half; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) {
        add(sums[threadIdx.y + half][threadIdx.x], sum);
        sums[threadIdx.y][threadIdx.x] = sum;
      }
    }
    if (threadIdx.y == 0 && at < length) C[(size_t)cut[0] * length + at] = sum;
    __syncthreads();
  }
}

extern "C" __global__ void BOUNDS pieces_vec4(
    int rows, int n, long long nnz, const int* __restrict__ first_row,
    const int* __restrict__ counts, const int* __restrict__ parts, const int* __restrict__ row_ptr,
    const int* __restrict__ col_idx, const real* __restrict__ vals, const real* __restrict__ B,
    real* __restrict__ C, real* __restrict__ partial) {
  multiply(rows, n, nnz, first_row, counts, parts, row_ptr, col_idx, vals, (const real4*)B,
           (real4*)C, (real4*)partial);
}

extern "C" __global__ void BOUNDS pieces_any(
    int rows, int n, long long nnz, const int* __restrict__ first_row,
    const int* __restrict__ counts, const int* __restrict__ parts, const int* __restrict__ row_ptr,
    const int* __restrict__ col_idx, const real* __restrict__ vals, const real* __restrict__ B,
    real* __restrict__ C, real* __restrict__ partial) {
  multiply(rows, n, nnz, first_row, counts, parts, row_ptr, col_idx, vals, B, C, partial);
}

extern "C" __global__ void join_vec4(int n, const int* __restrict__ counts,
                                     const int* __restrict__ cuts, const real* __restrict__ partial,
                                     real* __restrict__ C) {
  __shared__ real4 sums[TEAMS][LANES];
  join(n, counts, cuts, (const real4*)partial, (real4*)C, sums);
}

extern "C" __global__ void join_any(int n, const int* __restrict__ counts,
                                    const int* __restrict__ cuts, const real* __restrict__ partial,
                                    real* __restrict__ C) {
  __shared__ real sums[TEAMS][LANES];
  join(n, counts, cuts, partial, C, sums);
}
