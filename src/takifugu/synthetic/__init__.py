"""Made-up data in the shape of real data: for demonstrations, tests and those who have none."""
