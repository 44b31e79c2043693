"""The necessary condition for composition (the paper, Section 5), its attacks and its converse."""

from takifugu.finite.nfc.attack import (
    Attack,
    AttackSearch,
    OutputLeakage,
    leakage_of_outputs,
    odds_of_outputs,
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
    ReducedConstraints,
    constraints_of,
    needed_epsilons,
    non_redundant,
)
from takifugu.finite.nfc.dp_style import (
    DpConstraints,
    StyleComparison,
    dp_costs,
    dp_epsilon,
    dp_styles,
    least_dp_constraints,
)
from takifugu.finite.nfc.kernel_proof import KernelProof, prove_with_certificates, prove_with_kernel
from takifugu.finite.nfc.outputs_and_requirements import (
    MechanismOutput,
    OutputTable,
    Requirement,
    output_table,
    requirements,
)

__all__ = [
    "Attack",
    "AttackSearch",
    "BestCoupling",
    "Certificate",
    "Condition",
    "Constraint",
    "DpConstraints",
    "KernelProof",
    "MechanismOutput",
    "OutputLeakage",
    "OutputTable",
    "ReducedConstraints",
    "Requirement",
    "StyleComparison",
    "best_couplings",
    "condition_on_claims",
    "constraint_values",
    "constraints_of",
    "dp_costs",
    "dp_epsilon",
    "dp_styles",
    "leakage_of_outputs",
    "least_dp_constraints",
    "necessary_condition",
    "needed_epsilons",
    "non_redundant",
    "odds_of_outputs",
    "output_table",
    "prove_with_certificates",
    "prove_with_kernel",
    "requirements",
    "search_attack",
]
