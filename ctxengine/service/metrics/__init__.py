"""What a tenant's sessions cost, reuse and give up over a range of time."""
