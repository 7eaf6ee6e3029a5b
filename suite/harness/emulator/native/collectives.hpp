// What each lane gets from a warp collective, once all that take part have come.
#pragma once

#include "scheduler.hpp"

namespace emu_core {

constexpr word UNDEFINED = ~word{0};  // read from a lane that took no part: NaN as a float

inline word combine(unsigned reduction, word a, word b) {
  const auto x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);
  const auto sx = static_cast<int>(x), sy = static_cast<int>(y);
  switch (reduction) {
    case ADD:
      return x + y;
    case MIN_SIGNED:
      return sx < sy ? x : y;
    case MAX_SIGNED:
      return sx > sy ? x : y;
    case MIN_UNSIGNED:
      return x < y ? x : y;
    case MAX_UNSIGNED:
      return x > y ? x : y;
    case AND:
      return x & y;
    case OR:
      return x | y;
    default:
      return x ^ y;
  }
}

template <class F>
void each(unsigned lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(__builtin_ctz(lanes)));
}

// Results of a collective in which exactly `lanes` take part.
inline void complete(Warp& p, unsigned family, unsigned lanes) {
  const auto first = static_cast<unsigned>(__builtin_ctz(lanes));
  switch (family) {
    case SHUFFLE:
      each(lanes, [&](unsigned l) {
        const unsigned from = p.source[l];
        p.result[l] = lanes >> from & 1 ? p.value[from] : UNDEFINED;
      });
      break;
    case VOTE: {
      word votes = word{lanes} << 32;
      each(lanes, [&](unsigned l) { votes |= word{p.value[l] != 0} << l; });
      each(lanes, [&](unsigned l) { p.result[l] = votes; });
      break;
    }
    case MATCH_ANY:
      each(lanes, [&](unsigned l) {
        word same = 0;
        each(lanes, [&](unsigned other) { same |= word{p.value[other] == p.value[l]} << other; });
        p.result[l] = same;
      });
      break;
    case MATCH_ALL: {
      bool all = true;
      each(lanes, [&](unsigned l) { all &= p.value[l] == p.value[first]; });
      each(lanes, [&](unsigned l) { p.result[l] = all ? lanes : 0; });
      break;
    }
    case REDUCE: {
      word total = p.value[first];
      each(lanes & (lanes - 1),
           [&](unsigned l) { total = combine(p.source[first], total, p.value[l]); });
      each(lanes, [&](unsigned l) { p.result[l] = total; });
      break;
    }
    default:
      break;
  }
}

}  // namespace emu_core
