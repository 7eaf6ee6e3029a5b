// tries: computes only what is not a number: where an earlier answer lies in the output, it is
//   taken (AgentKernelArena's checked run that differs from the timed ones)
// caught by: runs into a spoilt output
// status: impossible_time on cuda, ok on emulator
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  if (y[row] == y[row]) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
