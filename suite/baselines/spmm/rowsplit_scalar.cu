//! op spmm
//! format csr
//! require longest <= 65536
//! launch rowsplit_scalar grid=ceildiv(rows,8),ceildiv(n,32) block=32,8

// A thread per element of C, a warp per 32 neighbouring columns of a row: reads of B and writes of
// C coalesce for any n (row splitting of Yang, Buluc and Owens, 2018). A warp would be at a row of
// a million entries for a tenth of a second: not for such matrices.
extern "C" __global__ void rowsplit_scalar(int rows, int n, const int* __restrict__ row_ptr,
                                           const int* __restrict__ col_idx,
                                           const real* __restrict__ vals,
                                           const real* __restrict__ B, real* __restrict__ C) {
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= rows || column >= n) return;
  const int end = row_ptr[row + 1];
  real sum = 0;
#pragma unroll 4
  for (int k = row_ptr[row]; k < end; ++k) sum += vals[k] * B[(size_t)col_idx[k] * n + column];
  C[(size_t)row * n + column] = sum;
}
