// Signs of both, then Vᵀ out of V.
#include "tilewise/svd/randomized_out.hpp"

#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/signs.hpp"

namespace tilewise::svd {
namespace {

/// Some rows of a matrix, row by row.
template <class T> struct Rows {
    T* data = nullptr;
    grid::Range range;
    std::int64_t columns = 0;

    Rows part(grid::Range some) const { return {data + (some.begin - range.begin) * columns, some, columns}; }
    void scale(const std::vector<double>& factors) const {
        for (std::int64_t i = 0; i < range.size(); ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                data[i * columns + j] = static_cast<T>(data[i * columns + j] * factors[static_cast<std::size_t>(j)]);
            }
        }
    }
};

template <class T> Array<T> transposed(const Rows<T>& rows) {
    const std::int64_t count = rows.range.size();
    Array<T> to(count * rows.columns);
    for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < rows.columns; ++j) {
            to[j * count + i] = rows.data[i * rows.columns + j];
        }
    }
    return to;
}

}  // namespace

template <class T> void write(Context& context, LowRankFactors<T>& factors, Writer& writer, bool sync) {
    const Timed timed(context.ledger, Phase::output, "output");
    const std::int64_t count = std::ssize(factors.sigma);
    Part part;
    part.s = factors.sigma;
    Array<T> vt;
    if (factors.memory != nullptr) {  // also where this rank has no rows of it
        const Rows<T> tall{factors.tall, factors.high, count},
            across = Rows<T>{factors.across.data(), {0, factors.width}, count}.part(
                grid::Partition(factors.width, context.comm.size())[context.comm.rank()]);
        const Rows<T>&u = factors.transposed ? across : tall, &v = factors.transposed ? tall : across;
        const std::vector<double> flips =
            signs(context.comm, Elements<T>{u.data, u.range.size(), count, count, 1}, u.range.begin);
        u.scale(flips);
        v.scale(flips);
        mpi::together(context.comm, [&] { vt = transposed(v); });
        part.u = reinterpret_cast<std::byte*>(u.data);
        part.u_share = grid::Block{u.range, {0, u.range.size() > 0 ? count : 0}};
        part.vt = vt.raw();
        part.vt_share = grid::Block{{0, v.range.size() > 0 ? count : 0}, v.range};
    }
    writer.write(context, part);
    writer.finish(context, sync);
}

template void write(Context&, LowRankFactors<float>&, Writer&, bool);
template void write(Context&, LowRankFactors<double>&, Writer&, bool);

}  // namespace tilewise::svd
