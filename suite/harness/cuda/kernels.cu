// What the CUDA device needs besides the program it judges: inputs, gathers, digests and the check.
// Compiled once per precision with `real` as float or double, and WIDE defined for double.

typedef unsigned long long u64;

__device__ inline u64 mix(u64 z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

__device__ inline u64 position() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline u64 stride() { return (u64)gridDim.x * blockDim.x; }

// Twin of suite.harness.inputs.Stream: odd integers of so many bits, times scale.
extern "C" __global__ void stream(real* out, u64 count, u64 seed, int bits, double scale) {
  for (u64 i = position(); i < count; i += stride()) {
    u64 z = mix(seed + (i + 1) * 0x9E3779B97F4A7C15ull);
    long long odd = (long long)(z >> (64 - bits)) * 2 + 1 - (1ll << bits);
    out[i] = (real)((double)odd * scale);
  }
}

extern "C" __global__ void gather(const real* source, const int* slots, real* out, u64 count) {
  for (u64 i = position(); i < count; i += stride()) {
    int slot = slots[i];
    out[i] = slot < 0 ? (real)0 : source[slot];
  }
}

// in is rows × columns, row-major; out its transpose.
extern "C" __global__ void transpose(const real* in, real* out, u64 rows, u64 columns) {
  for (u64 i = position(); i < rows * columns; i += stride()) {
    u64 column = i / rows, row = i % rows;
    out[i] = in[row * columns + column];
  }
}

// A sum of hashes, so that the order of threads does not matter.
extern "C" __global__ void digest(const unsigned* words, u64 count, u64* result) {
  u64 sum = 0;
  for (u64 i = position(); i < count; i += stride()) sum += mix(words[i] + (i + 1) * 0x9E3779B97F4A7C15ull);
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

// One block a band: start and size of each, and in result the first that holds anything but 0xFF.
// base is 0 on a GPU, where starts are addresses.
extern "C" __global__ void guards(const unsigned char* base, const u64* bands, u64 count, u64* result) {
  u64 band = blockIdx.x;
  if (band >= count) return;
  const unsigned char* start = base + bands[2 * band];
  for (u64 i = threadIdx.x; i < bands[2 * band + 1]; i += blockDim.x)
    if (start[i] != 0xFF) atomicMin(result, band);
}

// Reads a buffer larger than the L2, leaving only clean lines behind.
extern "C" __global__ void flush(const uint4* buffer, u64 count, unsigned* sink) {
  unsigned seen = 0;
  for (u64 i = position(); i < count; i += stride()) {
    uint4 v = buffer[i];
    seen |= v.x | v.y | v.z | v.w;
  }
  if (seen) *sink = seen;  // the buffer holds zeros: never taken, never optimised away
}

// Sum of products in at least twice the working precision, with the sum of magnitudes.
struct Sum {
  double high, low, magnitude;
  __device__ Sum() : high(0), low(0), magnitude(0) {}
  __device__ void add(real a, real b) {
    double p = (double)a * (double)b;
#ifdef WIDE
    double e = fma((double)a, (double)b, -p);  // TwoProduct
    two_sum(p);
    low += e;
#else
    high += p;  // exact product of floats
#endif
    magnitude += fabs(p);
  }
  __device__ void two_sum(double p) {  // Knuth
    double s = high + p, t = s - high;
    low += (high - (s - t)) + (p - t);
    high = s;
  }
  __device__ void merge(double h, double l, double m) {
    two_sum(h);
    low += l;
    magnitude += m;
  }
};

__device__ inline void across_warp(Sum& s) {
  for (int d = 16; d; d /= 2) {
    double h = __shfl_down_sync(~0u, s.high, d), l = __shfl_down_sync(~0u, s.low, d);
    double m = __shfl_down_sync(~0u, s.magnitude, d);
    s.merge(h, l, m);
  }
}

struct Result {
  u64 ratio;  // bits of a nonnegative double, which order like the number
  u64 wrong, unwritten;
  int row, unused;
};

__device__ void judge(const Sum& s, int entries, int row, real got, double growth, double unit,
                      double tiny, Result* result) {
  double bound = (entries + growth) * unit * s.magnitude + entries * tiny;
  double error = fabs(((double)got - s.high) - s.low);
  double ratio = error == 0 ? 0 : error / bound;
  if (!isfinite(got)) ratio = __longlong_as_double(0x7FF0000000000000ll);
  if (ratio > __longlong_as_double(*(volatile long long*)&result->ratio))
    atomicMax(&result->ratio, (u64)__double_as_longlong(ratio));
  if (!(ratio <= 1)) {
    atomicAdd(&result->wrong, 1ull);
    if (isnan(got)) atomicAdd(&result->unwritten, 1ull);
    atomicMin(&result->row, row);
  }
}

// One warp a row, lanes over its entries; long rows are left to check_long.
extern "C" __global__ void check_vector(int rows, int limit, const int* row_ptr, const int* col_idx,
    const real* vals, const real* x, const real* y, double growth, double unit, double tiny, Result* result) {
  int row = position() / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  int begin = row_ptr[row], end = row_ptr[row + 1];
  if (end - begin > limit) return;
  Sum s;
  for (int p = begin + lane; p < end; p += 32) s.add(vals[p], x[col_idx[p]]);
  across_warp(s);
  if (lane == 0) judge(s, end - begin, row, y[row], growth, unit, tiny, result);
}

// One warp a row and 32 columns, a lane a column.
extern "C" __global__ void check_matrix(int rows, int limit, int n, const int* row_ptr, const int* col_idx,
    const real* vals, const real* B, const real* C, double growth, double unit, double tiny, Result* result) {
  int chunks = (n + 31) / 32;
  u64 warp = position() / 32;
  int row = warp / chunks, column = (int)(warp % chunks) * 32 + threadIdx.x % 32;
  if (row >= rows || column >= n) return;
  int begin = row_ptr[row], end = row_ptr[row + 1];
  if (end - begin > limit) return;
  Sum s;
  for (int p = begin; p < end; ++p) s.add(vals[p], B[(u64)col_idx[p] * n + column]);
  judge(s, end - begin, row, C[(u64)row * n + column], growth, unit, tiny, result);
}

// One block of 1024 a long row and column chunk. With one column the 32 lanes share the entries too.
extern "C" __global__ void check_long(const int* long_rows, int n, const int* row_ptr, const int* col_idx,
    const real* vals, const real* B, const real* C, double growth, double unit, double tiny, Result* result) {
  __shared__ double high[32][33], low[32][33], magnitude[32][33];
  int row = long_rows[blockIdx.x], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int column = n == 1 ? 0 : blockIdx.y * 32 + lane;
  int begin = row_ptr[row], end = row_ptr[row + 1];
  Sum s;
  if (column < n) {
    int first = n == 1 ? threadIdx.x : warp, step = n == 1 ? 1024 : 32;
    for (int p = begin + first; p < end; p += step) s.add(vals[p], B[(u64)col_idx[p] * n + column]);
  }
  if (n == 1) across_warp(s);
  high[warp][lane] = s.high, low[warp][lane] = s.low, magnitude[warp][lane] = s.magnitude;
  __syncthreads();
  if (warp) return;
  Sum total;
  for (int w = 0; w < 32; ++w) total.merge(high[w][lane], low[w][lane], magnitude[w][lane]);
  if (column < n && (n > 1 || lane == 0))
    judge(total, end - begin, row, C[(u64)row * n + column], growth, unit, tiny, result);
}
