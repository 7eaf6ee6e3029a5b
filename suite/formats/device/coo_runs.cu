//! base coo
//! param ROUNDS 4
//! size rounds ceildiv(nnz,128)
//! derived heads uchar 32*rounds
//! derived run_rows int 128*rounds
//! prepare coo_runs_find grid=ceildiv(nnz,1024) block=256

// COO with flags in place of row indices (those of CSR5: Liu and Vinter, 2015). A warp takes a
// round of 128 entries, four a lane. heads[32 * round + lane] has a bit for each of a lane's
// entries that begins a run of equal rows; the rows of a round's runs stand in order from run_rows
// + 128 * round on. The first entry of every ROUNDS-th round begins a run whatever its row, so that
// a warp may begin there. An entry takes 8 bytes and not 12; col_idx and vals are those of coo.

// How many runs begin in the lanes below, and in the whole warp; every lane takes part.
__device__ int2 count_heads(unsigned heads) {
  int before = 0, runs = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned lanes = __ballot_sync(0xffffffffu, heads >> i & 1);
    before += __popc(lanes & ((1u << (threadIdx.x % 32)) - 1));
    runs += __popc(lanes);
  }
  return make_int2(before, runs);
}

extern "C" __global__ void coo_runs_find(int nnz, const int* __restrict__ row_idx,
                                         unsigned char* __restrict__ heads,
                                         int* __restrict__ run_rows) {
  const long long round = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  const long long first = round * 128 + lane * 4;
  if (round * 128 >= nnz) return;
  int row[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) row[i] = first + i < nnz ? row_idx[first + i] : -1;
  int previous = -1;
  if (first > 0 && first < nnz && !(lane == 0 && round % ROUNDS == 0))
    previous = row_idx[first - 1];
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (row[i] >= 0 && row[i] != (i > 0 ? row[i - 1] : previous)) bits |= 1u << i;
  }
  long long to = round * 128 + count_heads(bits).x;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (bits >> i & 1) run_rows[to++] = row[i];
  }
  heads[round * 32 + lane] = (unsigned char)bits;
}
