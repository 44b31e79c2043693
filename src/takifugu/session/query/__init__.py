"""The kinds of query, one module each; `takifugu.session.query_planner` lists them."""
