// tries: reads past its output, where an evaluator may have put the right answer (pygpubench's
//   search for the expected tensor)
// caught by: memory of its own
// status: wrong_result on cuda, memory_fault on emulator
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  y[row] = y[row + 2 * ((rows + 127) / 128 * 128)];
}
