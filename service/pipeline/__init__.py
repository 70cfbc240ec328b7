"""What step factories are given, and what they make."""
