// The ranks of a communicator as the team that kernels know.
#pragma once

#include "tilewise/dist/root_task.hpp"
#include "tilewise/kernel/factor/team.hpp"

namespace tilewise::dist {

/// Every function is collective, and a rank that throws leaves others waiting: use it where that aborts the
/// job. What travels is counted in the ledger.
class RankTeam : public kernel::Team {
public:
    RankTeam(Context& context, const RootTask& root_task) : context_(context), root_task_(root_task) {}

    int rank() const override { return context_.comm.rank(); }
    int size() const override { return context_.comm.size(); }
    void largest(std::vector<double>& values) const override;
    void on_root(const std::function<void(int threads)>& work, int threads) const override;

private:
    void broadcast_reals(double* values, std::int64_t count, int root) const override;
    void gather_reals(const kernel::SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                      double* to) const override;
    Buffer redistribute_reals(const kernel::SpreadColumns& a, const kernel::WantedBlock& wanted) const override;

    Context& context_;
    const RootTask& root_task_;
};

}  // namespace tilewise::dist
