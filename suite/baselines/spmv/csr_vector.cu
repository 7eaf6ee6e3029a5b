//! op spmv
//! format csr
//! choose LANES 2 4 8 16 32
//! require longest <= 65536
//! launch csr_vector grid=ceildiv(rows*LANES,256) block=256

// LANES neighbouring threads per row, reduced by shuffles (the vector kernel of Bell and Garland,
// 2009, with teams smaller than a warp). Good when rows are about equally long and LANES is a
// little below their length: loads coalesce and few lanes idle.
extern "C" __global__ void csr_vector(int rows, const int* __restrict__ row_ptr,
                                      const int* __restrict__ col_idx,
                                      const real* __restrict__ vals, const real* __restrict__ x,
                                      real* __restrict__ y) {
  const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  const int lane = threadIdx.x % LANES;
  real sum = 0;
  if (row < rows) {
    const int end = row_ptr[row + 1];
#pragma unroll 4
    for (int k = row_ptr[row] + lane; k < end; k += LANES) sum += vals[k] * x[col_idx[k]];
  }
  // Threads past the last row take part: a shuffle needs the whole warp.
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, step, LANES);
  }
  if (row < rows && lane == 0) y[row] = sum;
}
