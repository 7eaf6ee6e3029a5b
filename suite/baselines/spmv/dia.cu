//! op spmv
//! format dia
//! launch dia grid=ceildiv(rows,1024) block=256

// Four neighbouring rows a thread: the values of a diagonal come as one vector that streams past
// the caches, and neighbouring threads read neighbouring x, mostly from the L1. No column indices
// are read at all, so that bands and stencils can come near copy bandwidth.

__device__ void stream(const float* from, float (&to)[4]) {
  const float4 v = __ldcs((const float4*)from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

__device__ void stream(const double* from, double (&to)[4]) {
  const double2 low = __ldcs((const double2*)from);
  const double2 high = __ldcs((const double2*)from + 1);
  to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
}

extern "C" __global__ void dia(int rows, int cols, int diags, int pitch,
                               const int* __restrict__ offsets, const real* __restrict__ vals,
                               const real* __restrict__ x, real* __restrict__ y) {
  const long long row = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  real sum[4] = {0, 0, 0, 0};
  // Offsets ascend, so the outer two tell whether every diagonal is inside the matrix here.
  const bool inside = diags > 0 && row + offsets[0] >= 0 && row + 4 + offsets[diags - 1] <= cols;
  if (inside) {
#pragma unroll 4
    for (int d = 0; d < diags; ++d) {
      const real* at = x + row + offsets[d];
      real v[4];
      stream(vals + (size_t)d * pitch + row, v);  // the pitch reaches past the last row
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] += v[i] * at[i];
    }
  } else {
    for (int d = 0; d < diags; ++d) {
      const long long col = row + offsets[d];
      if (col <= -4 || col >= cols) continue;  // the diagonal has left the matrix
      real v[4];
      stream(vals + (size_t)d * pitch + row, v);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (col + i >= 0 && col + i < cols) sum[i] += v[i] * x[col + i];
      }
    }
  }
  if (row + 4 <= rows) {
    real4 all;
    all.x = sum[0], all.y = sum[1], all.z = sum[2], all.w = sum[3];
    *(real4*)(y + row) = all;
    return;
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (row + i < rows) y[row + i] = sum[i];
  }
}
