//! op spmv
//! format csr
//! let SHARE 2048
//! require longest<=65536
//! derived first_rows int ceildiv(rows+nnz,SHARE)+1
//! prepare divide grid=rows//256+1 block=256
//! launch csr_adaptive grid=ceildiv(rows+nnz,SHARE) block=256

// CSR-Adaptive (Greathouse and Daga, 2014): a block takes whole rows that together have about SHARE
// rows and entries, reads their entries side by side whatever the rows, and leaves the products in
// shared memory, from where teams that suit their length add up the rows. Every row has one
// writer, so that nothing is cleared first. A long last row is added up by the whole block.

#define THREADS 256
#define ALL 0xffffffffu

// Row r lies at r + row_ptr[r] on the way through rows and entries (merge path: Merrill and
// Garland, 2016); first_rows[b] is the first row from b * SHARE on.
extern "C" __global__ void divide(int rows, int nnz, const int* __restrict__ row_ptr,
                                  int* __restrict__ first_rows) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row > rows) return;
  const long long shares = ((long long)rows + nnz + SHARE - 1) / SHARE;
  const long long last = row < rows ? (row + row_ptr[row]) / SHARE : shares;
  const long long above = row > 0 ? (row - 1 + row_ptr[row - 1]) / SHARE : -1;
  for (long long share = above + 1; share <= last; ++share) first_rows[share] = (int)row;
}

// Products of the entries from a multiple of four on, four a thread at a time.
__device__ void multiply(int from, int to, int nnz, const int* __restrict__ col_idx,
                         const real* __restrict__ vals, const real* __restrict__ x,
                         real* products) {
#pragma unroll 2
  for (int k = from + 4 * threadIdx.x; k < to; k += 4 * THREADS) {
    if (k <= nnz - 4) {
      const int4 c = __ldcs((const int4*)(col_idx + k));
      real4 v = *(const real4*)(vals + k);
      v.x *= x[c.x], v.y *= x[c.y], v.z *= x[c.z], v.w *= x[c.w];
      *(real4*)(products + (k - from)) = v;
    } else {
      for (int i = k; i < nnz; ++i) products[i - from] = vals[i] * x[col_idx[i]];
    }
  }
}

// One sum of the values of all threads, in the first thread.
__device__ real block_sum(real sum, real* warp_sums) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < THREADS / 32; ++warp) sum += warp_sums[warp];
  return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    csr_adaptive(int nnz, const int* __restrict__ first_rows, const int* __restrict__ row_ptr,
                 const int* __restrict__ col_idx, const real* __restrict__ vals,
                 const real* __restrict__ x, real* __restrict__ y) {
  __shared__ uint4 memory[(SHARE + 8) * sizeof(real) / 16];
  __shared__ int ends[SHARE + 1];
  __shared__ real warp_sums[THREADS / 32];
  real* products = (real*)memory;
  const int first = first_rows[blockIdx.x];
  int count = first_rows[blockIdx.x + 1] - first;
  if (count == 0) return;
  const int begin = row_ptr[first], from = begin / 4 * 4;
  int end = row_ptr[first + count];
  for (int i = threadIdx.x; i <= count; i += THREADS) ends[i] = row_ptr[first + i] - from;
  if (end - begin > SHARE) {
    --count;  // all rows but the last have fewer entries together
    const int start = row_ptr[first + count];
    real sum = 0;
#pragma unroll 4
    for (int k = start + threadIdx.x; k < end; k += THREADS) sum += vals[k] * x[col_idx[k]];
    sum = block_sum(sum, warp_sums);
    if (threadIdx.x == 0) y[first + count] = sum;
    end = start;
  }
  multiply(from, end, nnz, col_idx, vals, x, products);
  __syncthreads();
  // Teams of the size that leaves a lane about four entries of a row.
  int bits = 0;
  while (bits < 5 && 4 * count << bits < end - begin) ++bits;
  const int lanes = 1 << bits, lane = threadIdx.x & (lanes - 1);
  for (int base = 0; base < count; base += THREADS >> bits) {
    const int row = base + (threadIdx.x >> bits);
    real sum = 0;
    if (row < count) {
      for (int k = ends[row] + lane; k < ends[row + 1]; k += lanes) sum += products[k];
    }
    for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
    if (row < count && lane == 0) y[first + row] = sum;
  }
}
