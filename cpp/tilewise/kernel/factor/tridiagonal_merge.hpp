// Two halves of a symmetric tridiagonal matrix, each decomposed, become the whole: one step of divide and conquer, in
// parts that ranks can share.
//
//      [ T₁ b ]  =  [ T₁'   ] + |b|·[ 1  ±1 ]     T₁' = Q₁·D₁·Q₁ᵀ, T₂' alike, so that T is orthogonally similar to
//      [ b T₂ ]     [    T₂']       [ ±1  1 ]     D + |b|·z·zᵀ, z the last row of Q₁ and, with the sign of b, the first
//                                                 one of Q₂; λ are roots of 1 + |b|·Σ zᵢ²/(dᵢ − λ) = 0
//
// What has a z that is too small, and all but one of equal d, are eigenvalues already. The vectors are those of a z
// that fits the roots exactly, which makes them orthogonal.
//
//      each root by itself ──▶ all roots known ──▶ each weight by itself ──▶ all known ──▶ each vector by itself
//
// M. Gu, S. Eisenstat, "A divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem", 1995; F. Tisseur,
// J. Dongarra, "A parallel divide and conquer algorithm for the symmetric eigenvalue problem on distributed memory
// architectures", 1999.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewise::kernel {

/// An eigenvalue as what is nearest of D, and how far it is from there: so that its distance from any of D has all
/// digits.
struct Root {
    std::int64_t nearest = 0;
    double beyond = 0;
};

class TridiagonalMerge {
public:
    /// D of both halves one after the other, and z; `beside` is |b|. All numbers of the matrix are about 1 at most.
    TridiagonalMerge(std::vector<double> d, std::vector<double> z, double beside);

    /// How many eigenvalues are roots, and not of D.
    std::int64_t roots() const { return static_cast<std::int64_t>(kept_.size()); }
    Root root(std::int64_t index) const;
    /// Takes them all, and then knows the eigenvalues.
    void take_roots(const Root* roots);
    double weight(std::int64_t index) const;
    void take_weights(const double* weights);

    /// Ascending.
    const std::vector<double>& values() const { return values_; }
    /// The eigenvector of one of them: by so much it has of each vector of the halves. `to` is zero at first.
    void vector(std::int64_t value, double* to) const;

private:
    struct Rotation {
        std::int64_t out, in;  ///< what leaves, and what it was turned with
        double c, s;
    };

    void deflate(std::vector<double> z);
    /// dᵢ − λ of a root.
    double apart(std::int64_t index, std::int64_t root) const;

    std::vector<double> d_;
    double beside_;
    std::vector<std::int64_t> kept_, out_;  ///< by D; `poles_` and `z_` are of those that are kept
    std::vector<Rotation> rotations_;
    std::vector<double> poles_, z_, weights_, values_;
    std::vector<Root> roots_;
    std::vector<std::int64_t> order_;  ///< of the sorted values: a root, or −1 − i for d_[i]
};

}  // namespace tilewise::kernel
