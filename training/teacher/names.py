"""What people call things: for each canonical name of a local, a constant or a kernel, others."""

from __future__ import annotations

from collections.abc import Mapping

from suite.formats import formats
from suite.harness.bind import PROBLEM_SIZES

NAMES: Mapping[str, tuple[str, ...]] = {
    # Locals
    "row": ("row", "r", "row_id", "my_row"),
    "col": ("col", "c", "column", "j_col"),
    "val": ("val", "value", "v", "a"),
    "lane": ("lane", "lane_id", "tid", "rank"),
    "k": ("k", "idx", "p", "jj", "e"),
    "begin": ("begin", "start", "lo", "row_start"),
    "end": ("end", "stop", "hi", "row_end"),
    "sum": ("sum", "acc", "total", "dot", "s"),
    "part": ("part", "partial", "piece", "psum"),
    "i": ("i", "u", "ii", "q"),
    "j": ("j", "jj_", "jx", "h"),
    "first": ("first", "begin_", "offset0", "lead"),
    "team": ("team", "group", "sub", "warp_row"),
    "at": ("at", "quad", "pos", "slot_col"),
    "length": ("length", "ld", "stride", "len"),
    "slot": ("slot", "index", "ix", "loc"),
    "slice": ("slice", "chunk_id", "sl", "strip"),
    "step": ("step", "delta", "off", "d_"),
    "dense": ("dense", "b", "loaded", "brow"),
    "kept": ("kept", "resident", "keep_it", "hot"),
    "products": ("products", "prod", "terms", "buffer"),
    "shared_x": ("shared_x", "xs", "cached_x", "sx"),
    "middle": ("middle", "mid", "m"),
    "low": ("low", "left", "l"),
    "cell": ("cell", "target", "dst", "out"),
    "share": ("share", "part_id", "job", "tile_id"),
    "diag": ("diag", "d", "dd"),
    "block_row": ("block_row", "br", "brow_id"),
    "inside": ("inside", "ok", "active", "valid"),
    "run_row": ("run_row", "current", "cur", "open_row"),
    "below": ("below", "up", "other", "prev"),
    "next": ("next", "nxt", "following"),
    "base": ("base", "row0", "block_first", "first_row"),
    "last": ("last", "limit_", "upto", "fin"),
    "pair": ("pair", "rr", "two_rows", "own_rows"),
    "entry": ("entry", "key", "wanted", "position"),
    "part_cols": ("part_cols", "mine", "my_codes", "cc"),
    "high": ("high", "right", "h_", "top"),
    "wide": ("wide", "has_high", "big", "long_columns"),
    "width_": ("width_", "steps", "wd", "entries_"),
    "bits": ("bits", "begun", "starts_", "mask"),
    "heads": ("heads", "flags", "marks", "head_bits"),
    "span": ("span", "range_", "my_share", "task"),
    "kind": ("kind", "bin", "cls", "group_"),
    "lanes": ("lanes", "team_size", "nl", "per_row"),
    "piece_sum": ("piece_sum", "partials", "piece_sums", "tail_sums"),
    "unit": ("unit", "thread", "gid", "t", "id"),
    # Constants, which are macros: capitals only
    "LANES": ("LANES", "WIDTH", "TPR", "THREADS_PER_ROW"),
    "BLOCK": ("BLOCK", "THREADS", "BLOCK_SIZE", "TPB"),
    "BATCH": ("BATCH", "DEPTH", "AHEAD", "INFLIGHT"),
    "ROWS": ("ROWS", "ROWS_PER_THREAD", "RPT", "HEIGHT"),
    "ITEMS": ("ITEMS", "PER_THREAD", "CHUNK", "ENTRIES"),
    "TILE": ("TILE", "STAGE", "CAPACITY"),
    "EDGE": ("EDGE", "BS", "BLOCK_EDGE"),
    "SPLIT": ("SPLIT", "PARTS", "WAYS"),
    "KEEP": ("KEEP", "KEEP_MB", "RESIDENT_MB"),
    "SLICE": ("SLICE", "SLICE_ROWS", "STRIP"),
    "LIMIT": ("LIMIT", "LONG_ROW", "CUTOFF"),
    "PER_ROW": ("PER_ROW", "ACROSS", "VECTORS_A_ROW"),
    "TEAM": ("TEAM", "GROUP", "SHARERS"),
    "WIDE": ("WIDE", "VEC", "WIDE_LOAD"),
    "WAVES": ("WAVES", "PER_SM", "OVERSUB"),
    # Functions and arrays of the program's own
    "multiply": ("multiply", "spmv_kernel", "product_kernel", "run", "kernel", "compute"),
    "add_tail": ("add_tail", "tail_kernel", "rest_kernel", "add_rest"),
    "add_long": ("add_long", "long_rows", "heavy_rows", "finish_long"),
    "narrow": ("narrow", "shrink", "compress", "to_short"),
    "short_cols": ("short_cols", "narrow_cols", "cols16", "small_cols"),
    "axpy": ("axpy", "madd", "add_scaled", "accumulate"),
    "row_sum": ("row_sum", "dot_row", "sum_row", "gather_row"),
    "add_to": ("add_to", "atomic_add", "add_vec"),
    "row_of": ("row_of", "find_row", "search_row"),
    "divide": ("divide", "find_starts", "cut", "mark_rows"),
    "starts": ("starts", "first_rows", "row_starts", "bounds"),
    "slices_": ("slices_", "tiles_across", "col_tiles", "parts_across"),
    "put": ("put", "stream_out", "write", "store_vec"),
    "to": ("to", "where", "dest"),
    "from": ("from", "src", "Bcol", "dense_col"),
    "work": ("work", "go", "do_block", "body"),
    "load": ("load", "fetch", "get"),
}

_FORMATS = formats().values()
RESERVED = frozenset(
    {"x", "y", "B", "C", "real", "real2", "real4", "min", "max", "fma", "int", "do", "if", "for"}
    | set(PROBLEM_SIZES)
    | {name for f in _FORMATS for name in (*f.size_names, *f.index_names, *f.value_names)}
)
