//! op spmv
//! format csr
//! let ITEMS 7
//! derived starts int ceildiv(rows+nnz,256*ITEMS)+1
//! workspace carry_rows int ceildiv(rows+nnz,256*ITEMS)
//! workspace carry_sums real ceildiv(rows+nnz,256*ITEMS)
//! prepare divide grid=(rows>0)*(rows//256+1) block=256
//! launch merge grid=ceildiv(rows+nnz,256*ITEMS) block=256
//! launch fix_up grid=ceildiv(rows+nnz,256*256*ITEMS) block=256

// The merge path of Merrill and Garland (2016): the way through the list of entries and the list of
// row ends has rows + nnz steps, and every thread takes ITEMS of them, so that neither long nor
// empty rows put it out of balance. Where blocks begin is found once; a block leaves the sum of the
// row that goes on to a second kernel. ITEMS is odd to keep threads in different banks.

#define THREADS 256
#define STEPS (THREADS * ITEMS)
#define ALL 0xffffffffu

// starts[b]: rows that have ended before step b * STEPS. Row r ends after r + 1 + row_ptr[r + 1].
extern "C" __global__ void divide(int rows, int nnz, const int* __restrict__ row_ptr,
                                  int* __restrict__ starts) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row > rows) return;
  const long long steps = (long long)rows + nnz, blocks = (steps + STEPS - 1) / STEPS;
  const long long from = row > 0 ? row + row_ptr[row] : 0;
  const long long to = row < rows ? row + 1 + row_ptr[row + 1] : (blocks + 1) * STEPS;
  for (long long b = (from + STEPS - 1) / STEPS; b <= blocks && b * STEPS < to; ++b) {
    starts[b] = (int)row;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    merge(int rows, int nnz, const int* __restrict__ starts, const int* __restrict__ row_ptr,
          const int* __restrict__ col_idx, const real* __restrict__ vals,
          const real* __restrict__ x, real* __restrict__ y, int* __restrict__ carry_rows,
          real* __restrict__ carry_sums) {
  __shared__ real products[STEPS];
  __shared__ real sums[STEPS + 1];
  __shared__ int ends[STEPS + 1];  // of rows, in entries of this block
  const int lane = threadIdx.x % 32;
  const int first = starts[blockIdx.x], count = starts[blockIdx.x + 1] - first;
  const long long step = (long long)blockIdx.x * STEPS, begin = step - first;
  const int steps = (int)min((long long)STEPS, (long long)rows + nnz - step);
  const int entries = steps - count;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int k = i * THREADS + threadIdx.x;
    if (k < entries) products[k] = __ldcs(vals + begin + k) * x[__ldcs(col_idx + begin + k)];
  }
  for (int i = threadIdx.x; i < count; i += THREADS) {
    ends[i] = (int)(row_ptr[first + i + 1] - begin);
  }
  if (threadIdx.x == 0) ends[count] = STEPS + 1, sums[count] = 0;  // a row that goes on
  __syncthreads();

  // Rows that have ended where this thread begins: row i ends after i + 1 + ends[i] steps.
  const int diagonal = min((int)threadIdx.x * ITEMS, steps);
  int low = 0, high = min(count, diagonal);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (middle + 1 + ends[middle] <= diagonal) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  int row = low, k = diagonal - low;
  real sum = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (diagonal + i >= steps) break;
    if (k < ends[row]) {
      sum += products[k++];
    } else {
      sums[row++] = sum;
      sum = 0;
    }
  }
  // What is left belongs to a row that another thread ends: one addition for each warp and row.
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const real below = __shfl_up_sync(ALL, sum, distance);
    const int row_below = __shfl_up_sync(ALL, row, distance);
    if (lane >= distance && row_below == row) sum += below;
  }
  const int row_above = __shfl_down_sync(ALL, row, 1);
  __syncthreads();
  if (lane == 31 || row_above != row) atomicAdd(sums + row, sum);
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += THREADS) y[first + i] = sums[i];
  if (threadIdx.x == 0)
    carry_rows[blockIdx.x] = first + count, carry_sums[blockIdx.x] = sums[count];
}

extern "C" __global__ void fix_up(int rows, int nnz, const int* __restrict__ carry_rows,
                                  const real* __restrict__ carry_sums, real* __restrict__ y) {
  const long long block = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (block * STEPS >= (long long)rows + nnz) return;
  if (carry_rows[block] < rows) atomicAdd(y + carry_rows[block], carry_sums[block]);
}
