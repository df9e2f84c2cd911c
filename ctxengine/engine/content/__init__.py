"""Reading what arrived: decoders from a body's raw text to items."""
