"""Kinds of places, how one kind follows another, and the countries of the synthetic check-ins.

The labels are the paper's. The kinds and all numbers are invented.
"""

from collections.abc import Mapping

KINDS: Mapping[str, tuple[str, ...]] = {
    "home": (
        "Home (private)",
        "Residential Building (Apartment / Condo)",
        "Neighborhood",
        "Housing Development",
    ),
    "work": (
        "Office",
        "Building",
        "Government Building",
        "Professional & Other Places",
        "Event Space",
        "Factory",
        "Coworking Space",
        "City Hall",
        "Design Studio",
    ),
    "study": (
        "University",
        "General College & University",
        "High School",
        "Student Center",
    ),
    "food": (
        "Restaurant",
        "Cafe",
        "Coffee Shop",
        "Fast Food Restaurant",
        "Bakery",
        "Pizza Place",
        "Burger Joint",
        "Diner",
        "Chinese Restaurant",
        "Italian Restaurant",
        "Sandwich Place",
        "Dessert Shop",
        "BBQ Joint",
        "Food Court",
        "Sushi Restaurant",
    ),
    "night": (
        "Bar",
        "Movie Theater",
        "Nightclub",
        "General Entertainment",
        "Lounge",
    ),
    "shop": (
        "Mall",
        "Grocery Store",
        "Convenience Store",
        "Clothing Store",
        "Department Store",
        "Electronics Store",
        "Bookstore",
        "Miscellaneous Shop",
        "Furniture / Home Store",
        "Women's Store",
        "Cosmetics Shop",
        "Mobile Phone Shop",
        "Hardware Store",
        "Sporting Goods Shop",
        "Boutique",
    ),
    "errand": (
        "other",
        "Medical Center",
        "Hospital",
        "Bank",
        "Salon / Barbershop",
        "Drugstore / Pharmacy",
        "Church",
        "Automotive Shop",
        "Doctor's Office",
        "Post Office",
        "Dentist's Office",
        "Spa / Massage",
    ),
    "leisure": (
        "Park",
        "Gym",
        "Gym / Fitness Center",
        "Plaza",
        "Other Great Outdoors",
        "Pool",
        "Field",
        "Playground",
        "Bridge",
    ),
    "travel": (
        "Bus Station",
        "Hotel",
        "Gas Station / Garage",
        "General Travel",
        "City",
    ),
}
"""Every label, by kind of place, the most popular of each kind first."""

AFFINITY: Mapping[str, tuple[float, ...]] = {
    #          home work stud food nigh shop erra leis trav
    "home": (0.10, 0.20, 0.10, 0.12, 0.06, 0.12, 0.10, 0.08, 0.12),
    "work": (0.16, 0.16, 0.02, 0.30, 0.08, 0.08, 0.06, 0.04, 0.10),
    "study": (0.16, 0.04, 0.24, 0.24, 0.06, 0.08, 0.04, 0.08, 0.06),
    "food": (0.14, 0.14, 0.06, 0.14, 0.14, 0.16, 0.06, 0.06, 0.10),
    "night": (0.26, 0.04, 0.02, 0.20, 0.30, 0.04, 0.02, 0.02, 0.10),
    "shop": (0.14, 0.04, 0.02, 0.26, 0.06, 0.28, 0.08, 0.04, 0.08),
    "errand": (0.20, 0.12, 0.04, 0.18, 0.04, 0.18, 0.12, 0.04, 0.08),
    "leisure": (0.22, 0.04, 0.04, 0.24, 0.08, 0.08, 0.04, 0.18, 0.08),
    "travel": (0.12, 0.18, 0.06, 0.18, 0.06, 0.06, 0.06, 0.08, 0.20),
}
"""The weight with which one kind of place follows another, in the order of `KINDS`."""

# fmt: off
COUNTRIES = (
    "TR", "US", "BR", "ID", "MX", "MY", "JP", "RU", "TH", "PH", "CL", "SG", "GB", "SA", "UA",
    "ES", "KR", "IT", "CA", "CO", "AR", "NL", "BE", "DE", "FR", "KW", "AE", "PT", "AU", "GR",
    "PE", "VE", "EC", "HU", "PY", "CR", "FI", "LV", "PR", "IN", "CN", "TW", "HK", "EG", "QA",
    "SE", "AT", "CZ", "PL", "RO", "IE", "BY", "KZ", "DK", "NO", "CH", "IL", "ZA", "NZ", "VN",
    "PA", "DO", "GT", "SV", "HN", "JO", "LB", "BH", "OM", "LT", "EE", "BG", "RS", "HR", "MA",
    "TN", "KE",
)
# fmt: on
"""77 countries by ISO code, the largest first; their order of size is invented."""
