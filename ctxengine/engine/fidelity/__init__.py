"""What a request still holds of the facts that the model goes on to use (design 8: replay lab)."""
