"""The pinned region A: what it is made of, how it is measured and hashed, when it rotates."""
