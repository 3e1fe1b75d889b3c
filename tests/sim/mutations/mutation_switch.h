#pragma once

// What an instrumented copy of the sources includes (schemata.py). Every mutant has a number; NINFER_MUTANT says which one
// is alive, 0 or nothing: none. An operator keeps its place and precedence: `a < b` becomes `a < Relation<7, '>'>{} < b`,
// which catches the left side first and compares then.

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <type_traits>

namespace ninfer::mutation {

// Read once. The only environment variable and the only global of the sources, in the copy alone.
inline const int kAlive = std::getenv("NINFER_MUTANT") == nullptr ? 0 : std::atoi(std::getenv("NINFER_MUTANT"));

inline bool alive(int mutant) { return mutant == kAlive; }

// The condition, or its opposite.
template <typename Condition>
bool flip(int mutant, Condition&& condition) {
    return static_cast<bool>(condition) != alive(mutant);
}

template <typename Number>
Number off_by(int mutant, Number number, int change) {
    static_assert(std::is_arithmetic_v<Number>);
    return alive(mutant) ? static_cast<Number>(number + static_cast<Number>(change)) : number;
}

// What a function returns, or 0.
template <typename Number>
std::remove_cvref_t<Number> zero_for(int mutant, Number&& number) {
    static_assert(std::is_arithmetic_v<std::remove_cvref_t<Number>>);
    return alive(mutant) ? std::remove_cvref_t<Number>{} : number;
}

// std::min, or std::max in its place.
template <int kMutant>
struct Min {
    template <typename T>
    static T of(const T& left, const T& right) {
        return alive(kMutant) ? std::max(left, right) : std::min(left, right);
    }
    template <typename T>
    static T of(std::initializer_list<T> values) {
        return alive(kMutant) ? std::max(values) : std::min(values);
    }
};
template <int kMutant>
struct Max {
    template <typename T>
    static T of(const T& left, const T& right) {
        return alive(kMutant) ? std::min(left, right) : std::max(left, right);
    }
    template <typename T>
    static T of(std::initializer_list<T> values) {
        return alive(kMutant) ? std::min(values) : std::max(values);
    }
};

// The marker between the sides of `a OP b`: OriginalOp where the mutant sleeps, MutantOp where it is alive.
template <int kMutant, typename OriginalOp, typename MutantOp>
struct Infix {};
template <typename Left, typename Marker>
struct Caught {
    const Left& left;
};

template <int kMutant, typename OriginalOp, typename MutantOp, typename Left, typename Right>
auto answer_of(const Caught<Left, Infix<kMutant, OriginalOp, MutantOp>>& caught, const Right& right) {
    using Answer = decltype(OriginalOp{}(caught.left, right));
    return alive(kMutant) ? static_cast<Answer>(MutantOp{}(caught.left, right)) : OriginalOp{}(caught.left, right);
}

#define NINFER_MUTATION_INFIX(operation)                                                                            \
    template <typename Left, int kMutant, typename OriginalOp, typename MutantOp>                                   \
    Caught<Left, Infix<kMutant, OriginalOp, MutantOp>> operator operation(const Left& left,                         \
                                                                          Infix<kMutant, OriginalOp, MutantOp>) {   \
        return {left};                                                                                              \
    }                                                                                                               \
    template <typename Left, int kMutant, typename OriginalOp, typename MutantOp, typename Right>                   \
    auto operator operation(const Caught<Left, Infix<kMutant, OriginalOp, MutantOp>>& caught, const Right& right) { \
        return ::ninfer::mutation::answer_of(caught, right);                                                        \
    }
NINFER_MUTATION_INFIX(<)
NINFER_MUTATION_INFIX(<=)
NINFER_MUTATION_INFIX(>)
NINFER_MUTATION_INFIX(>=)
NINFER_MUTATION_INFIX(==)
NINFER_MUTATION_INFIX(!=)
NINFER_MUTATION_INFIX(+)
NINFER_MUTATION_INFIX(-)
#undef NINFER_MUTATION_INFIX

// The operators as the sources mean them: between numbers of different types as C++ converts them.
#define NINFER_MUTATION_OPERATION(Name, operation)                    \
    struct Name {                                                     \
        template <typename Left, typename Right>                      \
        auto operator()(const Left& left, const Right& right) const { \
            return left operation right;                              \
        }                                                             \
    };
NINFER_MUTATION_OPERATION(Less, <)
NINFER_MUTATION_OPERATION(LessEqual, <=)
NINFER_MUTATION_OPERATION(Greater, >)
NINFER_MUTATION_OPERATION(GreaterEqual, >=)
NINFER_MUTATION_OPERATION(Equal, ==)
NINFER_MUTATION_OPERATION(NotEqual, !=)
NINFER_MUTATION_OPERATION(Plus, +)
NINFER_MUTATION_OPERATION(Minus, -)
#undef NINFER_MUTATION_OPERATION

}  // namespace ninfer::mutation
