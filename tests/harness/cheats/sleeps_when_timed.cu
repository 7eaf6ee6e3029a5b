// tries: counts its runs and sleeps in the later ones, so that whoever is measured next to it
//   looks fast
// caught by: nothing that lasts
// status: load_error
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64
//! launch done grid=1 block=1

__device__ int runs;

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  if (runs > 2) __nanosleep(1000000);
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}

extern "C" __global__ void done() { ++runs; }
