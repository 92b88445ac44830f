// One output after the other: U·diag(s), scaled into memory of its own, U, Vᵀ, and s by rank 0.
#include "tilewise/svd/writer.hpp"

#include <array>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

/// Shares are lists of ranges, and every strategy wants those of all ranks: blocks are, so that four numbers tell each.
std::vector<grid::Share> shares_of_all(const mpi::Communicator& comm, const grid::Share& mine) {
    std::array<std::int64_t, 4> sent{};
    if (mine.size() > 0) {
        sent = {mine.rows[0].begin, mine.rows[0].end, mine.columns[0].begin, mine.columns[0].end};
    }
    std::vector<std::array<std::int64_t, 4>> got(static_cast<std::size_t>(comm.size()));
    check(MPI_Allgather(sent.data(), 4, MPI_INT64_T, got.data(), 4, MPI_INT64_T, comm.get()), "MPI_Allgather");
    std::vector<grid::Share> shares;
    for (const auto& [top, bottom, left, right] : got) {
        shares.emplace_back(grid::Block{{top, bottom}, {left, right}});
    }
    return shares;
}

/// U·diag(s) of some rows of U.
template <class T> void scale_columns(const std::byte* u, std::byte* us, std::int64_t rows,
                                      const std::vector<double>& s, std::int64_t parts) {
    const auto* from = reinterpret_cast<const T*>(u);
    auto* to = reinterpret_cast<T*>(us);
    const auto columns = parts * static_cast<std::int64_t>(s.size());
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            to[i * columns + j] =
                static_cast<T>(static_cast<double>(from[i * columns + j]) * s[static_cast<std::size_t>(j / parts)]);
        }
    }
}

}  // namespace

void narrow(std::byte* data, std::int64_t count, Dtype to) {
    if (real_type(to) != Dtype::float32) {
        return;
    }
    count *= is_complex(to) ? 2 : 1;
    for (std::int64_t i = 0; i < count; ++i) {
        double value = 0;
        std::memcpy(&value, data + i * 8, 8);
        const auto rounded = static_cast<float>(value);
        std::memcpy(data + i * 4, &rounded, 4);
    }
}

Files cut_to(const Files& files, std::int64_t components) {
    Files cut = files;
    cut.s.columns = components;
    for (std::optional<io::Region>* file : {&cut.u, &cut.us}) {
        if (*file) {
            (*file)->columns = components;
        }
    }
    if (cut.vt) {
        cut.vt->rows = components;
    }
    return cut;
}

Writer::Writer(Context& context, const Files& files, const Options& options)
    : options_(options),
      files_(std::make_unique<Files>(files)) {
    if (options.energy <= 0) {
        open(context);
    }
}

void Writer::open(Context& context) {
    const auto opened = [&](const io::Region& region) {
        return std::make_unique<io::Output>(context, region, options_.write, options_.hints, false);
    };
    s_ = opened(files_->s);
    u_ = files_->u ? opened(*files_->u) : nullptr;
    vt_ = files_->vt ? opened(*files_->vt) : nullptr;
    us_ = files_->us ? opened(*files_->us) : nullptr;
}

void Writer::write(Context& context, Part& part) {
    if (!s_) {
        *files_ = cut_to(*files_, std::ssize(part.s));
        open(context);
    }
    const auto count = static_cast<std::int64_t>(files_->s.columns);
    std::vector<double> all;
    mpi::together(context.comm, [&] {
        all = part.s;
        all.resize(static_cast<std::size_t>(count));
    });
    if (us_) {
        const mpi::Span span(count, MPI_DOUBLE);
        check(MPI_Bcast(all.data(), span.count(), span.type(), 0, context.comm.get()), "MPI_Bcast");
        Buffer scaled;
        mpi::together(context.comm, [&] {
            const Dtype dtype = files_->us->dtype;
            scaled = Buffer(std::max<std::size_t>(1, static_cast<std::size_t>(part.u_share.size()) * size_of(dtype)));
            (real_type(dtype) == Dtype::float32
                 ? scale_columns<float>
                 : scale_columns<double>)(part.u, scaled.data(), part.u_share.height(), all, is_complex(dtype) ? 2 : 1);
        });
        store(context, *us_, part.u_share, scaled.data());
    }
    if (u_) {
        store(context, *u_, part.u_share, part.u);
    }
    if (vt_) {
        store(context, *vt_, part.vt_share, part.vt);
    }
    auto* s = reinterpret_cast<std::byte*>(all.data());
    narrow(s, count, files_->s.dtype);
    const bool mine = context.comm.rank() == 0;
    store(context, *s_, mine ? grid::Share(grid::Block{{0, 1}, {0, count}}) : grid::Share(), s);
}

void Writer::store(Context& context, io::Output& output, const grid::Share& mine, std::byte* data) const {
    const std::vector<grid::Share> shares = shares_of_all(context.comm, mine);
    output.store(context, [&](int rank) { return shares[static_cast<std::size_t>(rank)]; }, data);
}

void Writer::finish(Context& context, bool sync) {
    for (io::Output* output : {u_.get(), s_.get(), vt_.get(), us_.get()}) {
        if (output != nullptr) {
            output->finish(context, sync);
        }
    }
}

}  // namespace tilewise::svd
