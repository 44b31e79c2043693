"""What is done to the project for hours: `make torture` runs it all, `make test` a little of it."""
