"""The kinds of query, one module each; `takifugu.session.query.kinds` lists them."""
