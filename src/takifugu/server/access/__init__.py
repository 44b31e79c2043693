"""Who calls: tokens, browser sessions, rates, and requests forged by other pages."""
