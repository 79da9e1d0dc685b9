"""First contact with a GPU: parts that record, a bundle of their records, and pages made of it."""
