// Strategy `independent`: MPI-IO with a file view for each rank, read and written by each rank for itself.
#include "tilewise/io/file_view.hpp"

namespace tilewise::io {
namespace {

class Independent final : public Strategy {
public:
    explicit Independent(Hints hints) : hints_(std::move(hints)) {}

    void read(Context& context, const Transfer& transfer) const override {
        read_through_view(context, transfer, hints_, "MPI_File_read", MPI_File_read);
    }

    void write(Context& context, const Transfer& transfer) const override {
        write_through_view(context, transfer, hints_, "MPI_File_write",
                           [](MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
                               return MPI_File_write(file, data, count, type, status);
                           });
    }

private:
    Hints hints_;
};

}  // namespace

std::unique_ptr<Strategy> make_independent(const Hints& hints) { return std::make_unique<Independent>(hints); }

}  // namespace tilewise::io
