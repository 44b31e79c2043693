"""Synthetic data in the shape of real data, for demonstrations, tests and examples."""

from takifugu.synthetic.activities import Routines, draw_routines, write_activities
from takifugu.synthetic.check_ins import write_check_ins
from takifugu.synthetic.contact_lists import contact_list, school
from takifugu.synthetic.habits import Habits, draw_habits
from takifugu.synthetic.meter_readings import Meters, write_meter_readings

__all__ = [
    "Habits",
    "Meters",
    "Routines",
    "contact_list",
    "draw_habits",
    "draw_routines",
    "school",
    "write_activities",
    "write_check_ins",
    "write_meter_readings",
]
