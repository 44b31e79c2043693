"""Kinds of places, how one kind follows another, and the countries of the made-up check-ins.

The labels are the paper's. The kinds and all numbers are made up.
"""

from collections.abc import Mapping

KINDS: Mapping[str, tuple[str, ...]] = {
    "home": (
        "Home (private)",
        "Residential Building (Apartment / Condo)",
        "Housing Development",
        "Neighborhood",
    ),
    "work": (
        "Office",
        "Coworking Space",
        "Design Studio",
        "Factory",
        "Building",
        "Professional & Other Places",
        "Government Building",
        "City Hall",
        "Event Space",
    ),
    "study": ("University", "General College & University", "Student Center", "High School"),
    "food": (
        "Restaurant",
        "Sushi Restaurant",
        "Chinese Restaurant",
        "Italian Restaurant",
        "Fast Food Restaurant",
        "Sandwich Place",
        "Burger Joint",
        "Pizza Place",
        "BBQ Joint",
        "Diner",
        "Food Court",
        "Bakery",
        "Dessert Shop",
        "Cafe",
        "Coffee Shop",
    ),
    "night": ("Bar", "Nightclub", "Lounge", "General Entertainment", "Movie Theater"),
    "shop": (
        "Mall",
        "Department Store",
        "Clothing Store",
        "Women's Store",
        "Boutique",
        "Cosmetics Shop",
        "Electronics Store",
        "Mobile Phone Shop",
        "Bookstore",
        "Furniture / Home Store",
        "Hardware Store",
        "Sporting Goods Shop",
        "Miscellaneous Shop",
        "Grocery Store",
        "Convenience Store",
    ),
    "errand": (
        "Bank",
        "Post Office",
        "Drugstore / Pharmacy",
        "Hospital",
        "Medical Center",
        "Doctor's Office",
        "Dentist's Office",
        "Salon / Barbershop",
        "Spa / Massage",
        "Church",
        "Automotive Shop",
        "other",
    ),
    "leisure": (
        "Park",
        "Plaza",
        "Playground",
        "Field",
        "Pool",
        "Gym",
        "Gym / Fitness Center",
        "Other Great Outdoors",
        "Bridge",
    ),
    "travel": ("Bus Station", "General Travel", "Gas Station / Garage", "Hotel", "City"),
}
"""Every label, by kind of place."""

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
"""How often one kind of place follows another, in the order of `KINDS`."""

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
"""77 countries by ISO code, the largest first; their order of size is made up."""
