//! op spmv
//! choose SEGMENT_BYTES 32768 131072
//! format colbuckets SEGMENT_BYTES=SEGMENT_BYTES
//! workspace products real max_spots
//! launch multiply grid=(rows>0)*sms*PER_SM block=1024//PER_SM shared=TILE_BYTES
//! launch sum_rows grid=(rows>0)*segments block=SEGMENT_BYTES//128 shared=SEGMENT_BYTES+SEGMENT_BYTES//128*itemsize+16

// Where columns and rows are scattered, 32-byte accesses to the L2 take the time, be they gathers
// of x or atomic adds into y. Two steps need neither (propagation blocking: Beamer, Asanovic and
// Patterson, 2017). Entries lie in buckets, one for each tile of columns and segment of the CSR
// order. `multiply` goes through them tile by tile, x in shared memory, and writes each product to
// its bucket's place in the segment; `sum_rows` puts a segment's products back into CSR order in
// shared memory and sums rows there. All coalesced: 16 bytes an entry, of which 8 stay in the L2.

#define THREADS (1024 / PER_SM)            // of multiply
#define BATCH (sizeof(real) == 4 ? 2 : 1)  // vectors of four on their way
#define ALL 0xffffffffu

__device__ void load_four(const float* from, float (&to)[4]) {
  const float4 v = __ldcs((const float4*)from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

__device__ void load_four(const double* from, double (&to)[4]) {
  const double2 v = __ldcs((const double2*)from), w = __ldcs((const double2*)from + 1);
  to[0] = v.x, to[1] = v.y, to[2] = w.x, to[3] = w.y;
}

__device__ void store_four(float* to, const float (&v)[4]) {
  *(float4*)to = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ void store_four(double* to, const double (&v)[4]) {
  ((double2*)to)[0] = make_double2(v[0], v[1]);
  ((double2*)to)[1] = make_double2(v[2], v[3]);
}

// Four of 16 bits.
__device__ uint2 load_four(const unsigned short* from) { return __ldcs((const uint2*)from); }
__device__ int nth_of(const uint2& four, int i) {
  return (i < 2 ? four.x : four.y) >> i % 2 * 16 & 0xffff;
}

// What a thread takes at once: BATCH times four entries of a chunk, THREADS fours apart.
struct Entries {
  real value[BATCH][4];
  uint2 cols[BATCH];
  int to[BATCH];
};

// Fours are counted over all chunks.
__device__ void load_entries(int four, int end, const real* __restrict__ tile_vals,
                             const unsigned short* __restrict__ tile_cols,
                             const int* __restrict__ chunk_to, Entries& entries) {
#pragma unroll
  for (int i = 0; i < BATCH; ++i) {
    const int at = four + i * THREADS;
    if (at < end) {
      entries.to[i] = __ldcs(chunk_to + at / (CHUNK / 4));
      entries.cols[i] = load_four(tile_cols + (size_t)at * 4);
      load_four(tile_vals + (size_t)at * 4, entries.value[i]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    multiply(int cols, int nnz, const int* __restrict__ tile_at,
             const int* __restrict__ share_chunk, const int* __restrict__ chunk_to,
             const real* __restrict__ tile_vals, const unsigned short* __restrict__ tile_cols,
             const int* __restrict__ continued, const real* __restrict__ x,
             real* __restrict__ products, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  const real* tile = (const real*)memory;
  const int tiles = tiles_of(cols), segments = segments_of(nnz);
  // Several segments will add to these.
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < segments; i += gridDim.x * THREADS)
    if (continued[i] >= 0) y[continued[i]] = 0;
  int first = share_chunk[blockIdx.x];
  const int last = share_chunk[blockIdx.x + 1];
  while (first < last) {
    const int at = tile_of(first, tile_at, tiles, 1, 0);
    const int tile_end = min(last, tile_at[at + 1]);
    const int end = tile_end * (CHUNK / 4);
    int four = first * (CHUNK / 4) + threadIdx.x;
    Entries next;
    load_entries(four, end, tile_vals, tile_cols, chunk_to, next);
    const uint4* from = (const uint4*)(x + (size_t)at * TILE);
    const int vectors = (int)(((size_t)min(TILE, cols - at * TILE) * sizeof(real) + 15) / 16);
    __syncthreads();
#pragma unroll 6
    for (int i = threadIdx.x; i < vectors; i += THREADS) memory[i] = from[i];
    __syncthreads();
    for (; four < end; four += BATCH * THREADS) {
      const Entries entries = next;
      load_entries(four + BATCH * THREADS, end, tile_vals, tile_cols, chunk_to, next);
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int here = four + i * THREADS;
        if (here >= end) break;
        real product[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          product[j] = entries.value[i][j] * tile[nth_of(entries.cols[i], j)];
        store_four(products + (size_t)entries.to[i] * CHUNK + here % (CHUNK / 4) * 4, product);
      }
    }
    first = tile_end;
  }
}

// Puts a segment's products into CSR order.
__device__ void stage_products(int first, int end, const real* __restrict__ products,
                               const unsigned short* __restrict__ spots, real* stage) {
  const int each = 16 / (int)sizeof(real);  // fours that a thread loads together
  for (int base = first; base < end; base += each * SUMMERS) {
    real product[each][4];
    uint2 spot[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int four = base + i * SUMMERS + threadIdx.x;
      if (four < end) {
        spot[i] = load_four(spots + (size_t)four * 4);
        load_four(products + (size_t)four * 4, product[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (base + i * SUMMERS + threadIdx.x < end) {
#pragma unroll
        for (int j = 0; j < 4; ++j) stage[nth_of(spot[i], j)] = product[i][j];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(SUMMERS, 196608 / SEGMENT_BYTES)
    sum_rows(int rows, int cols, const int* __restrict__ row_ptr,
             const int* __restrict__ segment_chunks, const int* __restrict__ segment_row,
             const int* __restrict__ continued, const unsigned* __restrict__ begins,
             const real* __restrict__ products, const unsigned short* __restrict__ spots,
             real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  __shared__ real warp_lead[SUMMERS / 32];
  __shared__ unsigned warp_begins[SUMMERS / 32];
  real* stage = (real*)memory;
  const int segment = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = segment * SEGMENT, entries = row_ptr[rows];
  const int first_row = segment_row[segment], end_row = segment_row[segment + 1];
  const int word = (int)(((long long)first + threadIdx.x * SPAN) / 32);
  const unsigned heads = begins[word] >> threadIdx.x * SPAN % 32 & ALL >> (32 - SPAN);
  const int four = segment * (SEGMENT / CHUNK + tiles_of(cols)) * (CHUNK / 4);
  stage_products(four, four + segment_chunks[segment] * (CHUNK / 4), products, spots, stage);
  for (int k = max(0, entries - first) + threadIdx.x; k < SEGMENT; k += SUMMERS)
    stage[spot_of(k)] = 0;
  __syncthreads();

  // From the end of the span: the sum of each row goes to the place of its first entry, and what
  // comes before the first of them belongs to a row that begins in an earlier span.
  real* span = stage + threadIdx.x * (SPAN + 1);
  real lead = 0;
#pragma unroll
  for (int i = SPAN - 1; i >= 0; --i) {
    lead += span[i];
    if (heads >> i & 1) {
      span[i] = lead;
      lead = 0;
    }
  }
  const unsigned begun = __ballot_sync(ALL, heads != 0);
  const unsigned later = begun >> lane;  // lanes from this one on in which rows begin
  const int reach = later != 0 ? __ffs(later) - 1 : 31 - lane;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const real next = __shfl_down_sync(ALL, lead, step);
    if (reach >= step) lead += next;
  }
  if (lane == 0) warp_lead[warp] = lead, warp_begins[warp] = begun;
  __syncthreads();
  real more = __shfl_down_sync(ALL, lead, 1);
  if (lane == 31) more = 0;
  if (heads != 0 && later >> 1 == 0) {  // the next warps have some of it too
    for (int w = warp + 1; w < SUMMERS / 32; ++w) {
      more += warp_lead[w];
      if (warp_begins[w] != 0) break;
    }
  }
  if (heads != 0) span[31 - __clz(heads)] += more;
  if (threadIdx.x == 0 && continued[segment] >= 0) {
    real sum = lead;
    for (int w = 1; w < SUMMERS / 32 && warp_begins[w - 1] == 0; ++w) sum += warp_lead[w];
    atomicAdd(&y[continued[segment]], sum);
  }
  __syncthreads();

  const int crosses = continued[segment + 1];
  for (int row = first_row + threadIdx.x; row < end_row; row += SUMMERS) {
    const int k = row_ptr[row];
    const real sum = k < row_ptr[row + 1] ? stage[spot_of(k - first)] : (real)0;
    if (row == crosses) atomicAdd(&y[row], sum);
    if (row != crosses) y[row] = sum;
  }
}
