"""Synthetic data in the shape of real data, for demonstrations, tests and examples."""

from takifugu.synthetic.activities import Routines, draw_routines, write_activities
from takifugu.synthetic.check_ins import write_check_ins
from takifugu.synthetic.contact_lists import contact_list, school
from takifugu.synthetic.habits import Habits, draw_habits

__all__ = [
    "Habits",
    "Routines",
    "contact_list",
    "draw_habits",
    "draw_routines",
    "school",
    "write_activities",
    "write_check_ins",
]
