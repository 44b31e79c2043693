"""The necessary condition for composition (the paper, Section 5), its attacks and its converse."""

from takifugu.finite.nfc.attack import (
    Attack,
    AttackSearch,
    search_attack,
)
from takifugu.finite.nfc.condition import (
    Certificate,
    Condition,
    MechanismOutput,
    OutputTable,
    Requirement,
    condition_on_claims,
    constraint_values,
    dp_costs,
    dp_epsilon,
    necessary_condition,
    output_table,
    requirements,
)
from takifugu.finite.nfc.kernel_proof import (
    BestCoupling,
    KernelProof,
    best_couplings,
    prove_with_certificates,
    prove_with_kernel,
)

__all__ = [
    "Attack",
    "AttackSearch",
    "BestCoupling",
    "Certificate",
    "Condition",
    "KernelProof",
    "MechanismOutput",
    "OutputTable",
    "Requirement",
    "best_couplings",
    "condition_on_claims",
    "constraint_values",
    "dp_costs",
    "dp_epsilon",
    "necessary_condition",
    "output_table",
    "prove_with_certificates",
    "prove_with_kernel",
    "requirements",
    "search_attack",
]
