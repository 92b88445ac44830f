// Strategy `collective`: MPI-IO with a file view for each rank, and one read_all or write_all, which lets the library
// merge the ranks' requests.
#include "tilewise/io/file_view.hpp"

namespace tilewise::io {
namespace {

class Collective final : public Strategy {
public:
    explicit Collective(Hints hints) : hints_(std::move(hints)) {}

    void read(Context& context, const Transfer& transfer) const override {
        read_through_view(context, transfer, hints_, "MPI_File_read_all", MPI_File_read_all);
    }

    void write(Context& context, const Transfer& transfer) const override {
        write_through_view(context, transfer, hints_, "MPI_File_write_all",
                           [](MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
                               return MPI_File_write_all(file, data, count, type, status);
                           });
    }

private:
    Hints hints_;
};

}  // namespace

std::unique_ptr<Strategy> make_collective(const Hints& hints) { return std::make_unique<Collective>(hints); }

}  // namespace tilewise::io
