"""Who may use how many tokens, and who gives them up first."""
