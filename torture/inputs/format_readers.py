"""The commands that read the files of a format; FILE stands for the file."""

PRIORS = (
    *(
        "markov-chain",
        "interval-markov-chain",
        "higher-order-chain",
        "time-of-day-chain",
        "gaussian",
    ),
    *("gaussian-process", "bayesian-network", "markov-random-field", "independent-entries"),
    *("explicit", "product"),
)
OF_PRIORS = (
    *(
        "prior show FILE",
        "prior show FILE --json",
        "curve FILE --max-b 3",
        "translate FILE --dp 0.1",
    ),
    *("translate FILE --pufferfish 1", "reassess FILE --released 0.1", "translate FILE --dp 1"),
    *("curve FILE --secrets-within 1", "translate FILE --dp 0.1 --delta 1e-6", "prior show FILE"),
)
OF_GAUSSIANS = (
    *(
        "prior show FILE",
        "curve FILE --secrets-within 1",
        "translate FILE --dp .1 --secrets-within 1",
    ),
    *("translate FILE --pufferfish 1 --secrets-within 2", "curve FILE", "prior show FILE --json"),
)
OF_CHAINS = (*OF_PRIORS, "prior smooth FILE -o new.json", "translate FILE --dp .1 --table")
BY_KIND = {"markov-chain": OF_CHAINS, "gaussian-process": OF_GAUSSIANS}
OF_LEDGERS = (
    *("ledger show FILE", "ledger verify FILE", "ledger export FILE new.jsonl"),
    *("ledger backup FILE new.ledger", "ledger show FILE --json"),
)
OF_POLICIES = (
    *(
        "budget show stays",
        "dataset show stays",
        "prior show stays",
        "ledger show",
        "schedule show",
    ),
    *(
        "token list",
        "plan stays count --values ward --epsilon 1",
        "serve --check",
        "budget set stays 5",
    ),
    *("prior accept wards", "ledger verify", "token create --role analyst --name bo"),
)
OF_DATA = (
    *("dataset check stays", "plan stays histogram --epsilon 1"),
    *("release stays count --values ward --epsilon .1 -y", "dataset new FILE --out new.toml"),
    "prior fit FILE --state state --entity person --order step -o new.json",
    "quickstart FILE --entity person --order step --protected state --first-steps 8 --public zone"
    " --labels state=home,ward --folder q",
)
