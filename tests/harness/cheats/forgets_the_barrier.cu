// tries: reads what another warp is about to write, without waiting for it
// caught by: order of threads
// status: wrong_result
//! op spmv
//! format csr
//! launch k grid=rows block=64

extern "C" __global__ void k(int rows, const int* row_ptr, const int* col_idx, const real* vals,
                             const real* x, real* y) {
  __shared__ real sum_of_other_warp;
  int row = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  real sum = 0;
  for (int p = row_ptr[row] + lane; warp == 1 && p < row_ptr[row + 1]; p += 32)
    sum += vals[p] * x[col_idx[p]];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (warp == 1 && lane == 0) sum_of_other_warp = sum;
  if (warp == 0 && lane == 0) y[row] = sum_of_other_warp;
}
