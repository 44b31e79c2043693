"""What the server itself remembers: tokens, sign-ins, requests for approval, results."""
