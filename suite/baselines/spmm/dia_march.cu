//! op spmm
//! format dia
//! let LANES 8
//! let HEIGHT 4
//! let THREADS 768
//! require rows + cols < 2147480000
//! derived runs int diags
//! prepare find_runs grid=ceildiv(diags,128) block=128
//! launch dia_march_vec4 grid=(n%4==0)*(rows>0)*ceildiv(n,4*LANES)*max(1,min(sms//max(1,ceildiv(n,4*LANES)),ceildiv(rows,256))) block=LANES,THREADS*4//itemsize//LANES
//! launch dia_march_any grid=(n%4!=0)*(rows>0)*ceildiv(n,LANES)*max(1,min(sms//max(1,ceildiv(n,LANES)),ceildiv(rows,256))) block=LANES,THREADS*4//itemsize//LANES

// As dia.cu, but one block a multiprocessor that marches through a share of the rows, so that the
// rows of B which near diagonals have in common stay in its L1 from step to step. Blocks with the
// column slices of one share march side by side and have the matrix in common in the L2.

#define BOUNDS __launch_bounds__(THREADS * 4 / sizeof(real), 1)

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
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

// How many neighbouring diagonals begin with each.
extern "C" __global__ void find_runs(int diags, const int* __restrict__ offsets,
                                     int* __restrict__ runs) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  if (first >= diags) return;
  int next = first + 1;
  while (next < diags && offsets[next] - offsets[first] == next - first) ++next;
  runs[first] = next - first;
}

// Rows of B at one column of vectors.
template <typename Vec>
struct Dense {
  const Vec* top;
  int length, last;

  // A row outside the matrix meets only values of 0, so that any other will do.
  __device__ Vec operator[](int row) const { return top[(size_t)min(max(row, 0), last) * length]; }
};

// The values of HEIGHT rows on one diagonal.
struct Values {
  real4 of[HEIGHT / 4];

  __device__ void load(const real* __restrict__ vals) {
#pragma unroll
    for (int i = 0; i < HEIGHT / 4; ++i) of[i] = ((const real4*)vals)[i];
  }
};

// STEPS neighbouring diagonals, of which the window already has all but the last row of each.
// `ahead` has the values of the first, and then those of the diagonal after the last, which are on
// their way from memory while other rows of B come from the caches.
template <int STEPS, typename Vec>
__device__ void slide(const real* __restrict__ vals, const real* __restrict__ last, int pitch,
                      const Dense<Vec>& B, int col, Values& ahead, Vec (&window)[HEIGHT],
                      Vec (&sum)[HEIGHT]) {
  Values value[STEPS + 1];
  Vec next[STEPS];
  value[0] = ahead;
#pragma unroll
  for (int d = 0; d < STEPS; ++d) {
    const real* after = vals + (size_t)(d + 1) * pitch;
    value[d + 1].load(d + 1 < STEPS || after < last ? after : last);
    next[d] = B[col + d + HEIGHT - 1];
  }
  ahead = value[STEPS];
#pragma unroll
  for (int d = 0; d < STEPS; ++d) {
    window[(d + HEIGHT - 1) % HEIGHT] = next[d];
#pragma unroll
    for (int i = 0; i < HEIGHT / 4; ++i) {
      const real4& v = value[d].of[i];
      axpy(v.x, window[(d + 4 * i) % HEIGHT], sum[4 * i]);
      axpy(v.y, window[(d + 4 * i + 1) % HEIGHT], sum[4 * i + 1]);
      axpy(v.z, window[(d + 4 * i + 2) % HEIGHT], sum[4 * i + 2]);
      axpy(v.w, window[(d + 4 * i + 3) % HEIGHT], sum[4 * i + 3]);
    }
  }
}

// One Vec of columns of the HEIGHT rows from `row`.
template <typename Vec>
__device__ void sum_rows(int row, int rows, int diags, int pitch, const int* __restrict__ offsets,
                         const int* __restrict__ runs, const real* __restrict__ vals,
                         const Dense<Vec>& dense, Vec* __restrict__ C) {
  Vec sum[HEIGHT];
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) sum[i] = Vec();
  vals += row;  // the pitch reaches past the last row
  const real* last = vals + (size_t)max(diags - 1, 0) * pitch;
  Values ahead;
  if (diags > 0) ahead.load(vals);
  for (int d = 0, run; d < diags; d += run) {
    run = runs[d];
    int col = row + offsets[d];
    const real* value = vals + (size_t)d * pitch;
    Vec window[HEIGHT];
#pragma unroll
    for (int i = 0; i < HEIGHT - 1; ++i) window[i] = dense[col + i];
    int left = run;
    for (; left >= 4; left -= 4, col += 4, value += 4 * (size_t)pitch) {
      slide<4>(value, last, pitch, dense, col, ahead, window, sum);
    }
    if (left == 1) slide<1>(value, last, pitch, dense, col, ahead, window, sum);
    if (left == 2) slide<2>(value, last, pitch, dense, col, ahead, window, sum);
    if (left == 3) slide<3>(value, last, pitch, dense, col, ahead, window, sum);
  }
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) {
    if (row + i < rows) put(C + (size_t)(row + i) * dense.length, sum[i]);
  }
}

// The block's share of the rows, one Vec of columns a thread. Dense rows are n / (columns in a Vec)
// long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int diags, int pitch,
                         const int* __restrict__ offsets, const int* __restrict__ runs,
                         const real* __restrict__ vals, const Vec* __restrict__ B,
                         Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int slices = (length + LANES - 1) / LANES;
  const int at = blockIdx.x % slices * LANES + threadIdx.x;
  const int shares = gridDim.x / slices;
  const int share = ((rows - 1) / shares / HEIGHT + 1) * HEIGHT;
  const int first = blockIdx.x / slices * share;
  const int end = min(first + share, rows);
  if (at >= length) return;
  const Dense<Vec> dense = {B + at, length, cols - 1};
  for (int row = first + HEIGHT * threadIdx.y; row < end; row += HEIGHT * blockDim.y) {
    sum_rows(row, rows, diags, pitch, offsets, runs, vals, dense, C + at);
  }
}

extern "C" __global__ void BOUNDS dia_march_vec4(int rows, int cols, int n, int diags, int pitch,
                                                 const int* __restrict__ offsets,
                                                 const int* __restrict__ runs,
                                                 const real* __restrict__ vals,
                                                 const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, cols, n, diags, pitch, offsets, runs, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS dia_march_any(int rows, int cols, int n, int diags, int pitch,
                                                const int* __restrict__ offsets,
                                                const int* __restrict__ runs,
                                                const real* __restrict__ vals,
                                                const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, cols, n, diags, pitch, offsets, runs, vals, B, C);
}
