"""The necessary condition for composition (the paper, Section 5), its attacks and its converse."""

from takifugu.finite.nfc.attack import (
    Attack,
    Composed,
    Search,
    composed_leakage,
    composed_odds,
    search_attack,
)
from takifugu.finite.nfc.best_coupling import BestCoupling, best_couplings
from takifugu.finite.nfc.condition import (
    Certificate,
    Condition,
    condition_on_claims,
    constraint_values,
    necessary_condition,
)
from takifugu.finite.nfc.constraints import (
    Constraint,
    Reduced,
    constraints_of,
    needed_epsilons,
    non_redundant,
)
from takifugu.finite.nfc.coupling import KernelProof, prove_with_certificates, prove_with_kernel
from takifugu.finite.nfc.outputs import Answer, Outputs, Requirement, gather, requirements
from takifugu.finite.nfc.styles import (
    DpConstraints,
    Style,
    dp_costs,
    dp_epsilon,
    dp_styles,
    least_dp_constraints,
)

__all__ = [
    "Answer",
    "Attack",
    "BestCoupling",
    "Certificate",
    "Composed",
    "Condition",
    "Constraint",
    "DpConstraints",
    "KernelProof",
    "Outputs",
    "Reduced",
    "Requirement",
    "Search",
    "Style",
    "best_couplings",
    "composed_leakage",
    "composed_odds",
    "condition_on_claims",
    "constraint_values",
    "constraints_of",
    "dp_costs",
    "dp_epsilon",
    "dp_styles",
    "gather",
    "least_dp_constraints",
    "necessary_condition",
    "needed_epsilons",
    "non_redundant",
    "prove_with_certificates",
    "prove_with_kernel",
    "requirements",
    "search_attack",
]
