"""JSON documents: values that are read with their types, and classes that declare theirs."""
