"""Rate limits as data: policies, and the counting by them."""
