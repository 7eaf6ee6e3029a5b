//! base csr
//! param PIECE 64
//! param ROW 2
//! size pieces ceildiv(nnz+ROW*rows,PIECE)
//! size max_parts nnz//PIECE+nnz//256
//! size max_cuts nnz//256
//! size max_partials nnz//128
//! derived first_row int pieces+1
//! derived counts int 3 zero
//! derived parts int (longest>PIECE)*3*max_parts
//! derived cuts int (longest>256)*3*max_cuts
//! prepare csr_pieces_find grid=ceildiv(pieces+1,256) block=256
//! prepare csr_pieces_cut grid=(longest>PIECE)*ceildiv(rows,256) block=256

// CSR and lists of work of equal size. Piece i has the rows from first_row[i] to first_row[i + 1],
// about PIECE entries where a row counts as ROW more (as the merge path of Merrill and Garland,
// 2016, but never within a row). Rows of more than PIECE entries, each the last of its piece, are
// also cut into parts of 256 to 4096 entries, in any order: counts[0] parts of three integers, the
// row, the first entry and how many. A row of several parts has in place of the row -1 - s in each,
// s being the slot of its partial sum: counts[2] slots, at most max_partials. counts[1] such rows
// stand in cuts, three integers each: the row, the slot of its first part, how many parts.

// The size `pieces`.
__device__ int pieces_of(int rows, long long nnz) {
  return (int)((nnz + (long long)ROW * rows + PIECE - 1) / PIECE);
}

namespace preparing {

constexpr unsigned ALL = 0xffffffffu;

// Entries of a part: enough that each warp of the device gets about one, from 256 to 4096.
__device__ int part_size(long long nnz, int sms) {
  const long long steps = (nnz / (32 * sms) + 255) / 256;
  return 256 * (int)(steps < 1 ? 1 : steps > 16 ? 16 : steps);
}

}  // namespace preparing

// Piece i has the rows from the first whose entries and rows before it are i * PIECE or more. A row
// of PIECE entries or more is therefore the last of its piece.
extern "C" __global__ void csr_pieces_find(int rows, long long nnz, const int* __restrict__ row_ptr,
                                           int* __restrict__ first_row) {
  const long long pieces = (nnz + (long long)ROW * rows + PIECE - 1) / PIECE;
  const long long piece = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (piece > pieces) return;
  int low = 0, high = rows;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (row_ptr[middle] + (long long)ROW * middle < piece * PIECE) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  first_row[piece] = piece == pieces ? rows : low;
}

// Lists the parts of every row of more than PIECE entries, and the rows that have several.
extern "C" __global__ void csr_pieces_cut(int rows, long long nnz, int sms,
                                          const int* __restrict__ row_ptr, int* __restrict__ counts,
                                          int* __restrict__ parts, int* __restrict__ cuts) {
  using preparing::ALL;
  const int size = preparing::part_size(nnz, sms);
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const int begin = row < rows ? row_ptr[row] : 0;
  const int count = row < rows ? row_ptr[row + 1] - begin : 0;
  for (unsigned left = __ballot_sync(ALL, count > PIECE); left; left &= left - 1) {
    const int owner = __ffs(left) - 1;
    const int from = __shfl_sync(ALL, begin, owner);
    const int entries = __shfl_sync(ALL, count, owner);
    const int several = (entries - 1) / size + 1;
    const int of = (int)(row - lane) + owner;
    int at = 0, slot = 0;
    if (lane == 0) {
      at = atomicAdd(&counts[0], several);
      if (several > 1) {
        slot = atomicAdd(&counts[2], several);
        int* cut = cuts + 3 * atomicAdd(&counts[1], 1);
        cut[0] = of, cut[1] = slot, cut[2] = several;
      }
    }
    at = __shfl_sync(ALL, at, 0);
    slot = __shfl_sync(ALL, slot, 0);
    for (int i = lane; i < several; i += 32) {
      int* part = parts + 3 * (size_t)(at + i);
      const int done = i * size;
      part[0] = several > 1 ? -1 - (slot + i) : of;
      part[1] = from + done;
      part[2] = min(entries - done, size);
    }
  }
}
