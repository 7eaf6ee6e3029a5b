//! op spmm
//! format ell
//! let LANES 8
//! launch ell_warp_vec4 grid=(n%4==0)*ceildiv(rows,8),ceildiv(n,4*LANES) block=32,8
//! launch ell_warp_any grid=(n%4!=0)*ceildiv(rows,8),ceildiv(n,LANES) block=32,8

// A warp a row, for matrices so small that latency is all the time there is: where entries lie
// follows from the row, so that they are on their way after the first instruction, all at once, and
// the rows of B after them. Teams of LANES threads, a vector of columns each, take turns with the
// entries.

#define ALL 0xffffffffu
#define TEAMS (32 / LANES)
#define BOUNDS __launch_bounds__(256, sizeof(real) == 4 ? 4 : 2)

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

// One Vec of columns of one row. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int n, int width, int pitch, const int* __restrict__ row_len,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int lane = threadIdx.x;
  const int team = lane / LANES;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int at = blockIdx.y * LANES + lane % LANES;
  const bool inside = at < length;  // the others load entries for their team
  if (row >= rows) return;          // the whole warp
  const int count = row_len[row];
  B += at;

  Vec sum = Vec();
  for (int done = 0; done < width; done += 32) {
    const size_t slot = (size_t)min(done + lane, width - 1) * pitch + row;
    const int col = col_idx[slot];  // while it is not known yet how many there are
    const real value = vals[slot];
    Vec dense[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const int k = i * TEAMS + team;
      const size_t from = (size_t)__shfl_sync(ALL, col, k) * length;
      dense[i] = inside && done + k < count ? B[from] : Vec();
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      axpy(__shfl_sync(ALL, value, i * TEAMS + team), dense[i], sum);
    }
  }
#pragma unroll
  for (int step = 16; step >= LANES; step /= 2) add(from_lane(sum, step), sum);
  if (inside && team == 0) put(C + (size_t)row * length + at, sum);
}

extern "C" __global__ void BOUNDS ell_warp_vec4(int rows, int n, int width, int pitch,
                                                const int* __restrict__ row_len,
                                                const int* __restrict__ col_idx,
                                                const real* __restrict__ vals,
                                                const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, n, width, pitch, row_len, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS ell_warp_any(int rows, int n, int width, int pitch,
                                               const int* __restrict__ row_len,
                                               const int* __restrict__ col_idx,
                                               const real* __restrict__ vals,
                                               const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, n, width, pitch, row_len, col_idx, vals, B, C);
}
