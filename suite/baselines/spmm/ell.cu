//! op spmm
//! format ell
//! launch ell_vec4 grid=(n%4==0)*ceildiv(rows,32),ceildiv(n,32) block=8,32
//! launch ell_any grid=(n%4!=0)*ceildiv(rows,8),ceildiv(n,32) block=32,8

// Eight threads a row with four columns each, over column-major storage: entry k of the rows of a
// block lies in one cache line, so the block reads the matrix as densely as one warp of SpMV would.

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

// One Vec of columns of one row. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int n, int pitch, const int* __restrict__ row_len,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int at = blockIdx.y * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows || at >= length) return;
  const int entries = row_len[row];
  Vec sum = Vec();
#pragma unroll 4
  for (int k = 0; k < entries; ++k) {
    const size_t slot = (size_t)k * pitch + row;
    axpy(vals[slot], B[(size_t)col_idx[slot] * length + at], sum);
  }
  C[(size_t)row * length + at] = sum;
}

extern "C" __global__ void ell_vec4(int rows, int n, int pitch, const int* __restrict__ row_len,
                                    const int* __restrict__ col_idx, const real* __restrict__ vals,
                                    const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, n, pitch, row_len, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void ell_any(int rows, int n, int pitch, const int* __restrict__ row_len,
                                   const int* __restrict__ col_idx, const real* __restrict__ vals,
                                   const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, n, pitch, row_len, col_idx, vals, B, C);
}
