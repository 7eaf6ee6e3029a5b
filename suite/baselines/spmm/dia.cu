//! op spmm
//! format dia
//! launch dia_vec4 grid=(n%4==0)*ceildiv(rows,128),ceildiv(n,32) block=8,32
//! launch dia_any grid=(n%4!=0)*ceildiv(rows,32),ceildiv(n,32) block=32,8

// Four neighbouring rows a thread, so that one vector brings a diagonal's values for all of them.
// The rows of B that a block needs overlap from diagonal to diagonal and come from the L1.

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

// One Vec of columns of four rows. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int rows, int cols, int n, int diags, int pitch,
                         const int* __restrict__ offsets, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int at = blockIdx.y * blockDim.x + threadIdx.x;
  const long long row = 4 * ((long long)blockIdx.x * blockDim.y + threadIdx.y);
  if (row >= rows || at >= length) return;
  B += at, C += at;
  Vec sum[4] = {Vec(), Vec(), Vec(), Vec()};
#pragma unroll 2
  for (int d = 0; d < diags; ++d) {
    const long long col = row + offsets[d];
    if (col <= -4 || col >= cols) continue;  // the diagonal has left the matrix
    // The pitch reaches past the last row, and values outside the matrix are 0.
    const real4 v = *(const real4*)(vals + (size_t)d * pitch + row);
    const real value[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (col + i >= 0 && col + i < cols) axpy(value[i], B[(size_t)(col + i) * length], sum[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (row + i < rows) C[(size_t)(row + i) * length] = sum[i];
  }
}

extern "C" __global__ void dia_vec4(int rows, int cols, int n, int diags, int pitch,
                                    const int* __restrict__ offsets, const real* __restrict__ vals,
                                    const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, cols, n, diags, pitch, offsets, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void dia_any(int rows, int cols, int n, int diags, int pitch,
                                   const int* __restrict__ offsets, const real* __restrict__ vals,
                                   const real* __restrict__ B, real* __restrict__ C) {
  multiply(rows, cols, n, diags, pitch, offsets, vals, B, C);
}
