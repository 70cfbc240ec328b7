"""How often callers may ask: policies, and the counting behind them."""
