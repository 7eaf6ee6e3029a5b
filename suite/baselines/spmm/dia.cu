//! op spmm
//! format dia
//! choose LANES 8 32
//! choose THREADS 256 512
//! let HEIGHT 4
//! require rows + cols < 2147480000
//! derived runs int diags
//! prepare find_runs grid=ceildiv(diags,128) block=128
//! launch dia_vec4 grid=(n%4==0)*ceildiv(rows,HEIGHT*(THREADS*4//itemsize//LANES))*ceildiv(n,4*LANES) block=LANES,THREADS*4//itemsize//LANES
//! launch dia_any grid=(n%4!=0)*ceildiv(rows,HEIGHT*(THREADS*4//itemsize//LANES))*ceildiv(n,LANES) block=LANES,THREADS*4//itemsize//LANES

// Four neighbouring rows a thread, so that one vector brings a diagonal's values for all of them.
// Along a run of neighbouring diagonals a window of four rows of B slides through the registers: a
// band of D diagonals costs D + 3 loads of B instead of 4 * D. What the runs of a stencil share is
// in the L1, the more of it the more rows a block has; small blocks leave less idle at the end.
// Column slices of the same rows are neighbours in the grid and share the matrix in the L2.

// Says nothing of blocks a multiprocessor: told so, the compiler loads four diagonals together and
// takes 74 to 80 registers where it now takes 64. More threads hide more than more loads of each.
#define BOUNDS __launch_bounds__(THREADS * 4 / sizeof(real))

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

// STEPS neighbouring diagonals, of which the window already has all but the last row of each.
template <int STEPS, typename Vec>
__device__ void slide(const real* __restrict__ vals, int pitch, const Dense<Vec>& B, int col,
                      Vec (&window)[HEIGHT], Vec (&sum)[HEIGHT]) {
  real4 value[STEPS];
  Vec next[STEPS];
#pragma unroll
  for (int d = 0; d < STEPS; ++d) {
    next[d] = B[col + d + HEIGHT - 1];
    value[d] = *(const real4*)(vals + (size_t)d * pitch);
  }
#pragma unroll
  for (int d = 0; d < STEPS; ++d) {
    window[(d + HEIGHT - 1) % HEIGHT] = next[d];
    axpy(value[d].x, window[d % HEIGHT], sum[0]);
    axpy(value[d].y, window[(d + 1) % HEIGHT], sum[1]);
    axpy(value[d].z, window[(d + 2) % HEIGHT], sum[2]);
    axpy(value[d].w, window[(d + 3) % HEIGHT], sum[3]);
  }
}

// One Vec of columns of HEIGHT rows. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int diags, int pitch,
                         const int* __restrict__ offsets, const int* __restrict__ runs,
                         const real* __restrict__ vals, const Vec* __restrict__ B,
                         Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int slices = (length + LANES - 1) / LANES;
  const int at = blockIdx.x % slices * LANES + threadIdx.x;
  const int row = HEIGHT * (blockIdx.x / slices * blockDim.y + threadIdx.y);
  if (row >= rows || at >= length) return;
  const Dense<Vec> dense = {B + at, length, cols - 1};
  vals += row;  // the pitch reaches past the last row

  Vec sum[HEIGHT];
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) sum[i] = Vec();
  for (int d = 0, run; d < diags; d += run) {
    run = runs[d];
    int col = row + offsets[d];
    const real* value = vals + (size_t)d * pitch;
    Vec window[HEIGHT];
#pragma unroll
    for (int i = 0; i < HEIGHT - 1; ++i) window[i] = dense[col + i];
    int left = run;
    for (; left >= 4; left -= 4, col += 4, value += 4 * (size_t)pitch) {
      slide<4>(value, pitch, dense, col, window, sum);
    }
    if (left == 1) slide<1>(value, pitch, dense, col, window, sum);
    if (left == 2) slide<2>(value, pitch, dense, col, window, sum);
    if (left == 3) slide<3>(value, pitch, dense, col, window, sum);
  }
#pragma unroll
  for (int i = 0; i < HEIGHT; ++i) {
    if (row + i < rows) put(C + (size_t)(row + i) * length + at, sum[i]);
  }
}

extern "C" __global__ void BOUNDS dia_vec4(int rows, int cols, int n, int diags, int pitch,
                                           const int* __restrict__ offsets,
                                           const int* __restrict__ runs,
                                           const real* __restrict__ vals,
                                           const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, cols, n, diags, pitch, offsets, runs, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS dia_any(int rows, int cols, int n, int diags, int pitch,
                                          const int* __restrict__ offsets,
                                          const int* __restrict__ runs,
                                          const real* __restrict__ vals, const real* __restrict__ B,
                                          real* __restrict__ C) {
  multiply(rows, cols, n, diags, pitch, offsets, runs, vals, B, C);
}
