"""The kinds of query, one module each; `takifugu.session.plans` lists them."""
