"""Ask a takifugu server as one asks a local session: `takifugu.connect`."""
