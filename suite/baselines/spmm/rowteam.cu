//! op spmm
//! format csr
//! let LANES 8
//! choose SPLIT 1 4
//! choose RESIDENT 4 6
//! require longest <= 8192
//! launch rowteam_vec4 grid=(n%4==0)*ceildiv(rows,256//(LANES*SPLIT)),ceildiv(n,4*LANES) block=LANES*SPLIT,256//(LANES*SPLIT)
//! launch rowteam_any grid=(n%4!=0)*ceildiv(rows,256//(LANES*SPLIT)),ceildiv(n,LANES) block=LANES*SPLIT,256//(LANES*SPLIT)

// SPLIT teams of LANES threads a row, a vector of columns each; the teams take turns with the
// entries. Each thread loads one entry and shuffles pass them round, so that each line of the
// matrix is read once and does not have to survive in the L1 among the rows of B; LANES rows of B
// are in flight in each team (row splitting of Yang, Buluc and Owens, 2018, with the staging of
// GE-SpMM, Huang et al., 2020). Several teams suit long rows and matrices that are too small to
// fill the device.

#define ALL 0xffffffffu
// RESIDENT blocks a multiprocessor leave registers for all LANES rows in flight, or for more teams.
#define BOUNDS __launch_bounds__(256, sizeof(real) == 4 ? RESIDENT : (RESIDENT + 1) / 2)

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
__device__ void multiply(int rows, int n, const int* __restrict__ row_ptr,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  constexpr int WIDTH = LANES * SPLIT;
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int lane = threadIdx.x;
  const int team = lane / LANES;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int at = blockIdx.y * LANES + lane % LANES;
  const bool inside = at < length;  // the others load entries for their team
  const int begin = row < rows ? row_ptr[row] : 0;
  const int count = row < rows ? row_ptr[row + 1] - begin : 0;
  const int most = __reduce_max_sync(ALL, count);  // of the warp's rows
  col_idx += begin, vals += begin, B += at;

  Vec sum = Vec();
  for (int done = 0; done < most; done += WIDTH) {
    int col = 0;
    real value = 0;
    if (done + lane < count) {
      col = __ldcs(col_idx + done + lane);
      value = __ldcs(vals + done + lane);
    }
    Vec dense[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const int k = i * SPLIT + team;
      const size_t from = (size_t)__shfl_sync(ALL, col, k, WIDTH) * length;
      dense[i] = inside && done + k < count ? B[from] : Vec();
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      axpy(__shfl_sync(ALL, value, i * SPLIT + team, WIDTH), dense[i], sum);
    }
  }
#pragma unroll
  for (int step = WIDTH / 2; step >= LANES; step /= 2) add(from_lane(sum, step), sum);
  if (row < rows && inside && team == 0) put(C + (size_t)row * length + at, sum);
}

extern "C" __global__ void BOUNDS rowteam_vec4(int rows, int n, const int* __restrict__ row_ptr,
                                               const int* __restrict__ col_idx,
                                               const real* __restrict__ vals,
                                               const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, n, row_ptr, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS rowteam_any(int rows, int n, const int* __restrict__ row_ptr,
                                              const int* __restrict__ col_idx,
                                              const real* __restrict__ vals,
                                              const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, n, row_ptr, col_idx, vals, B, C);
}
