// tries: calls itself until its stack is full
// caught by: guard
// status: memory_fault
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

__device__ __noinline__ real down(const real* x, int depth) {
  volatile real here[64];
  for (int i = 0; i < 64; ++i) here[i] = x[(depth + i) % 7];
  return here[depth % 64] + (x[0] == 12345 ? 0 : down(x, depth + 1));
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  y[row] = down(x, row);
}
