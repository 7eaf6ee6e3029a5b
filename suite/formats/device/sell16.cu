//! base sell c=32 sigma=SIGMA
//! param SIGMA 1024
//! require cols <= 16777216 and longest <= 4096
//! derived codes ushort slots
//! derived highs uchar slots
//! derived packed real slots
//! derived bases int slots//32+3*slices+4
//! prepare sell16_pack grid=slices block=32,8

// SELL-32-sigma (Kreutzer et al., 2014) with columns of 16 bits: the k-th columns of the 32 rows of
// a slice lie close together in a mesh, whatever its numbering, and are held as distances from the
// least of them. The bases of slice s begin at first_base(s, slice_ptr[s]) of bases, one for each
// k; where the first is negative the slice is wide, and its columns are codes + highs << 16. Within
// a slice entry k of lane l lies at place(k, width, l): four entries of a row side by side, and the
// up to three entries beyond full groups entry by entry. slice_ptr and perm are those of sell.

// Where the bases of a slice begin: at a multiple of 4, with room for all before it.
__device__ size_t first_base(int slice, int first_slot) {
  return (first_slot / 32 + 3LL * slice + 3) / 4 * 4;
}

// Group g of lane l, four entries, begins at 4 * (32 * g + l); then entry k at 32 * k + l.
__device__ int place(int k, int width, int lane) {
  return k < width / 4 * 4 ? 4 * (k / 4 * 32 + lane) + k % 4 : k * 32 + lane;
}

namespace preparing {

// Least and greatest column among the lanes that take part; least > greatest if none does.
__device__ void range(bool takes_part, int col, int& least, int& greatest) {
  least = __reduce_min_sync(0xffffffffu, takes_part ? col : 0x7fffffff);
  greatest = __reduce_max_sync(0xffffffffu, takes_part ? col : -1);
}

}  // namespace preparing

extern "C" __global__ void sell16_pack(const int* __restrict__ slice_ptr,
                                       const int* __restrict__ col_idx,
                                       const real* __restrict__ vals, unsigned short* codes,
                                       unsigned char* highs, real* packed, int* bases) {
  using preparing::range;
  const int slice = blockIdx.x, lane = threadIdx.x;
  const int begin = slice_ptr[slice];
  const int width = (slice_ptr[slice + 1] - begin) / 32;
  int least, greatest;
  bool fits = true;
  for (int k = threadIdx.y; k < width; k += blockDim.y) {
    const int slot = begin + k * 32 + lane;
    // What is 0 adds nothing, so that padding may take any column.
    range(vals[slot] != 0, col_idx[slot], least, greatest);
    fits = fits && greatest - (long long)least < 65536;
  }
  const bool wide = __syncthreads_or(!fits);
  int* base = bases + first_base(slice, begin);
  for (int k = threadIdx.y; k < width; k += blockDim.y) {
    const int slot = begin + k * 32 + lane;
    const real value = vals[slot];
    range(value != 0, col_idx[slot], least, greatest);
    const int from = wide ? 0 : greatest < 0 ? 0 : least;
    const int code = value != 0 ? col_idx[slot] - from : 0;
    const int to = begin + place(k, width, lane);
    codes[to] = (unsigned short)code;
    highs[to] = (unsigned char)(code >> 16);
    packed[to] = value;
    if (lane == 0) base[k] = wide ? -1 : from;
  }
}
