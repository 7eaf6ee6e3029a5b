//! op spmm
//! format csr
//! choose LANES 8 32
//! require n % 4 == 0
//! require longest <= 65536
//! launch rowsplit_vec4 grid=ceildiv(rows,256//LANES),ceildiv(n//4,LANES) block=LANES,256//LANES

// Four neighbouring columns a thread, LANES threads a row: as row splitting, with a quarter of the
// load instructions. Few lanes keep the part of B in use small, which helps its reuse in the L2;
// many lanes read the matrix fewer times. One team would be at a row of a million entries for a
// tenth of a second: not for such matrices.

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

extern "C" __global__ void rowsplit_vec4(int rows, int n, const int* __restrict__ row_ptr,
                                         const int* __restrict__ col_idx,
                                         const real* __restrict__ vals, const real* __restrict__ B,
                                         real* __restrict__ C) {
  const int quads = n / 4;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int quad = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= rows || quad >= quads) return;
  const real4* dense = (const real4*)B + quad;
  const int end = row_ptr[row + 1];
  real4 sum = real4();
#pragma unroll 4
  for (int k = row_ptr[row]; k < end; ++k) axpy(vals[k], dense[(size_t)col_idx[k] * quads], sum);
  ((real4*)C)[(size_t)row * quads + quad] = sum;
}
