// tries: counts its runs in scratch memory and writes nothing from the second on, when the answer
//   lies there
// caught by: runs into a spoilt output
// status: impossible_time on cuda, ok on emulator
//! op spmv
//! format csr
//! workspace runs int 1
//! launch k grid=ceildiv(rows,64) block=64
//! launch done grid=1 block=1

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, const int* runs) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  if (*runs >= 0) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}

extern "C" __global__ void done(int* runs) { *runs = max(*runs, 0) + 1; }
